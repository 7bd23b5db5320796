//! What lies in which slot, in fixed point.

use ring::word::signed;
use ring::{Modulus, Random};
use rustfft::num_complex::Complex;
use zeroize::Zeroizing;

use super::fourier::Spectrum;
use super::layer::Layer;

/// Real and imaginary parts of a ciphertext's slots.
pub(super) type Parts = [Zeroizing<Vec<u64>>; 2];

/// Masks of the blocks of a response, and what is added to its slots for them.
pub(super) struct Mask {
    /// For each block its plane.
    pub(super) planes: Zeroizing<Vec<i64>>,
    pub(super) slots: Parts,
}

impl Layer {
    pub(super) fn empty(&self) -> Parts {
        [0, 1].map(|_| Zeroizing::new(vec![0; self.packing.slots]))
    }

    /// Writes the transform of `planes`, block by block, times 2^`fraction`, from a slot on.
    pub(super) fn write(&self, parts: &mut Parts, first: usize, planes: &[f64], fraction: u32) {
        let block = self.packing.shape.block();
        let [real, imaginary] = parts;
        let slots = real.iter_mut().zip(imaginary.iter_mut()).skip(first);
        let scale = f64::from(fraction).exp2();
        let values = planes.chunks_exact(block).map(|plane| self.fourier.forward(plane));
        let values = values.flat_map(|spectrum| spectrum.0.clone());
        for ((real, imaginary), value) in slots.zip(values) {
            *real = fixed(value.re * scale, self.modulus);
            *imaginary = fixed(value.im * scale, self.modulus);
        }
    }

    /// The slots of a piece of channel-major values.
    pub(super) fn input_slots(&self, piece: usize, x: &[i64]) -> Parts {
        let x: Zeroizing<Vec<f64>> = Zeroizing::new(x.iter().map(|x| *x as f64).collect());
        let planes = Zeroizing::new(self.packing.planes(piece, &x));
        let (mut parts, unit) = (self.empty(), self.packing.unit());
        self.write(&mut parts, 0, &planes, self.fractions[0]);
        for part in &mut parts {
            (1..self.packing.copies).for_each(|copy| part.copy_within(..unit, copy * unit));
        }
        parts
    }

    /// Masks uniform below 2^[`Layer::mask_bits`] in magnitude, for all blocks of a response.
    pub(super) fn mask(&self, rng: &mut Random) -> Mask {
        let bits = self.mask_bits() + 1;
        let words = Zeroizing::new(rng.uniform(self.packing.unit() * self.packing.copies, bits));
        self.masked(Zeroizing::new(words.iter().map(|word| signed(*word, bits)).collect()))
    }

    /// With planes that are given.
    pub(super) fn masked(&self, planes: Zeroizing<Vec<i64>>) -> Mask {
        let negative: Vec<f64> = planes.iter().map(|x| -(*x as f64)).collect();
        let mut slots = self.empty();
        self.write(&mut slots, 0, &Zeroizing::new(negative), self.fractions.iter().sum());
        Mask { planes, slots }
    }

    /// Writes what the slots of a response say to channel-major results.
    pub(super) fn collect(&self, response: usize, parts: &Parts, results: &mut [i64]) {
        let [real, imaginary] = parts;
        let (packing, area) = (&self.packing, self.packing.shape.block());
        let scale = (-f64::from(self.fractions.iter().sum::<u32>())).exp2();
        for copy in 0..packing.copies {
            let mut sum = Spectrum(vec![Complex::default(); area]);
            for slot in copy * packing.unit()..(copy + 1) * packing.unit() {
                let [re, im] = [real, imaginary].map(|part| centred(part[slot], self.modulus));
                sum.0[slot % area] += Complex::new(re, im);
            }
            let plane = self.fourier.backward(sum);
            let plane = plane.iter().map(|x| (x * scale).round() as i64);
            self.place(response, copy, &Zeroizing::new(plane.collect::<Vec<i64>>()), results);
        }
    }

    /// Adds up the masks of each copy's blocks and writes them to channel-major results.
    pub(super) fn collect_masks(&self, response: usize, planes: &[i64], results: &mut [i64]) {
        let area = self.packing.shape.block();
        for (copy, unit) in planes.chunks_exact(self.packing.unit()).enumerate() {
            let mut sum = Zeroizing::new(vec![0; area]);
            for plane in unit.chunks_exact(area) {
                sum.iter_mut().zip(plane).for_each(|(sum, x)| *sum += x);
            }
            self.place(response, copy, &sum, results);
        }
    }

    fn place(&self, response: usize, copy: usize, plane: &[i64], results: &mut [i64]) {
        let [_, height, width] = self.packing.shape.output;
        let output = response * self.packing.copies + copy;
        if let Some(output) = results.chunks_exact_mut(height * width).nth(output) {
            self.packing.read(plane, output);
        }
    }
}

/// The residue of the nearest integer.
pub(super) fn fixed(value: f64, modulus: Modulus) -> u64 {
    modulus.of_signed(value.round() as i64)
}

/// The integer of least magnitude with a residue.
pub(super) fn centred(residue: u64, modulus: Modulus) -> f64 {
    let prime = modulus.value();
    let above = ring::word::spread((prime / 2).wrapping_sub(residue) >> 63);
    residue.wrapping_sub(prime & above) as i64 as f64
}
