//! The complex Fourier transform of planes.

use std::fmt;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};
use zeroize::{Zeroizing, optimization_barrier};

/// Complex numbers that are erased.
pub(super) struct Spectrum(pub(super) Vec<Complex<f64>>);

/// The transform of planes of some rows and columns.
#[derive(Clone)]
pub(super) struct Fourier {
    sides: [usize; 2],
    /// Along columns and along rows.
    forward: [Arc<dyn Fft<f64>>; 2],
    backward: [Arc<dyn Fft<f64>>; 2],
}

impl Fourier {
    pub(super) fn new(sides: [usize; 2]) -> Self {
        let mut planner = FftPlanner::new();
        let [forward, backward] = [FftDirection::Forward, FftDirection::Inverse]
            .map(|direction| sides.map(|side| planner.plan_fft(side, direction)));
        Self { sides, forward, backward }
    }

    /// The values of a plane, given row by row, column by column.
    pub(super) fn forward(&self, plane: &[f64]) -> Spectrum {
        let [rows, columns] = self.sides;
        let [down, across] = &self.forward;
        let mut values = Spectrum(plane.iter().map(|x| Complex::new(*x, 0.0)).collect());
        across.process(&mut values.0);
        let mut values = values.turned(rows, columns);
        down.process(&mut values.0);
        values
    }

    /// The real part of the plane that has these values.
    pub(super) fn backward(&self, mut values: Spectrum) -> Zeroizing<Vec<f64>> {
        let [rows, columns] = self.sides;
        let [down, across] = &self.backward;
        down.process(&mut values.0);
        let mut plane = values.turned(columns, rows);
        across.process(&mut plane.0);
        let scale = 1.0 / (rows * columns) as f64;
        Zeroizing::new(plane.0.iter().map(|x| x.re * scale).collect())
    }
}

impl Spectrum {
    /// Column by column, of so many rows and columns.
    fn turned(&self, rows: usize, columns: usize) -> Self {
        let places = (0..columns).flat_map(|column| (0..rows).map(move |row| (row, column)));
        let value = |(row, column)| self.0.get(row * columns + column).copied();
        Self(places.filter_map(value).collect())
    }
}

impl Drop for Spectrum {
    fn drop(&mut self) {
        self.0.fill(Complex::default());
        optimization_barrier(self.0.as_slice());
    }
}

impl fmt::Debug for Fourier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fourier({}x{})", self.sides[0], self.sides[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_values_are_cyclic_convolutions() {
        for [rows, columns] in [[1, 1], [1, 6], [5, 1], [4, 9], [30, 18]] {
            let fourier = Fourier::new([rows, columns]);
            let plane: Vec<f64> = (0..rows * columns).map(|i| (i * i % 97) as f64).collect();
            // A shift by one row and two columns.
            let mut shift = vec![0.0; rows * columns];
            shift[1 % rows * columns + 2 % columns] = 1.0;
            let [mut values, factors] = [&plane, &shift].map(|plane| fourier.forward(plane));
            values.0.iter_mut().zip(&factors.0).for_each(|(x, y)| *x *= *y);
            let shifted = fourier.backward(values);
            for (at, value) in plane.iter().enumerate() {
                let to = (at / columns + 1) % rows * columns + (at + 2) % columns;
                assert!((shifted[to] - value).abs() < 1e-9);
            }
        }
    }
}
