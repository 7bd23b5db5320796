//! Every order of operations against a plain convolution, and its counts against formulas.

mod clear;
mod counts;
mod noise;
mod parties;
mod shown;
