//! Against a plain convolution.
