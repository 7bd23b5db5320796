//! What it computes, how exactly, and what it shows.

mod leaks;
mod parties;
mod price;
