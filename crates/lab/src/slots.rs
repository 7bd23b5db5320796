//! Layers on packed slots by themselves: operations without weights, and the server's
//! computation without a network.

use graph::Conv;
use mpc::linear::slots::{Layer, Measurement};
use ring::word::signed;
use ring::{Prg, Random, Seed};
use runtime::Counts;
use runtime::parts::random;
use serde::Serialize;
use wire::{Error, Result};

/// Width of the weights and inputs that are made up, and of accumulators for a start.
const BITS: u32 = 8;

/// What the server of a slot-packed suite does for one layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counted {
    /// Counted by the code that runs, without data.
    #[serde(flatten)]
    pub operations: Counts,
    /// Rotations by the formulas of the paper.
    pub published_rotations: usize,
    /// Ciphertexts from the client.
    pub ciphertexts: usize,
    /// Ciphertexts to the client.
    pub responses: usize,
    /// Packing and parameters.
    pub protocol: String,
    /// Seconds of the computation in one thread, each run; empty when only counted.
    pub seconds: Vec<f64>,
}

/// Plans `conv` under `suite` with rotations in `slots` slots (or as the suite does), for
/// inputs and weights of 8 bits, and computes it `runs` times on random data.
///
/// # Errors
/// [`Error::Misuse`] for other suites, and what [`Layer::new`] refuses.
pub fn count(conv: &Conv, suite: &str, slots: Option<usize>, runs: usize) -> Result<Counted> {
    let protocol = runtime::parts::slot_protocol(suite).ok_or_else(|| {
        Error::misuse(format!("suite `{suite}` has no packed slots; use gazelle or gala"))
    })?;
    let taps = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
    let plain_bits = 2 * BITS + taps.max(1).ilog2() + 1;
    let layer = Layer::new(conv, protocol, BITS, plain_bits, slots)?;
    let mut seconds = Vec::with_capacity(runs);
    let mut operations = layer.operations();
    if runs > 0 {
        let mut rng: Random = random()?;
        let words = Prg::new(&Seed([0; 16]), 0).uniform(taps * conv.out_channels, BITS);
        let weight: Vec<i32> = words.iter().map(|word| signed(*word, BITS) as i32).collect();
        let measurement = Measurement::new(&layer, &weight, &mut rng)?;
        for _ in 0..runs {
            let (time, done) = measurement.run()?;
            seconds.push(time.as_secs_f64());
            operations = done;
        }
    }
    let (ciphertexts, responses) = layer.ciphertexts();
    Ok(Counted {
        operations: operations.into(),
        published_rotations: protocol.published_rotations(conv, layer.slots())?,
        ciphertexts,
        responses,
        protocol: layer.describe(),
        seconds,
    })
}
