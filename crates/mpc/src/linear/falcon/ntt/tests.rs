//! Against a plain convolution, in the clear and under encryption.

mod clear;
mod noise;
mod parties;
mod shapes;
mod shown;
