//! Every order of operations against a plain convolution, and its counts against formulas.

mod clear;
mod counts;
mod parties;
mod shown;
