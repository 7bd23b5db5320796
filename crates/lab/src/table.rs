//! Linear layers as FALCON's table 2 has them: the server's work by itself, for GAZELLE,
//! FALCON mod p, and FALCON as published.

use graph::Conv;
use he::bfv::Params;
use mpc::linear::falcon::{self, ntt};
use mpc::linear::{Timed, slots};
use ring::word::signed;
use ring::{Prg, Random, Seed};
use runtime::Counts;
use runtime::parts::random;
use serde::Serialize;
use wire::{Cost, Result};

/// Width of the weights and inputs that are made up.
const BITS: u32 = 8;

/// Bits that masks of the published protocol are wider than results. It computes on numbers
/// that are made up, so it leaks nothing that is secret.
const HIDDEN_BITS: u32 = 8;

/// One protocol on one layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Packing and parameters.
    pub protocol: String,
    /// Seconds of encoding weights.
    pub encoding: f64,
    /// Seconds of preparing masks and flooding, each run.
    pub preparing: Vec<f64>,
    /// Seconds of rotations, products and sums, each run.
    pub computing: Vec<f64>,
    /// Seconds of all that is left when an input has come, up to the bytes that are sent.
    pub online: Vec<f64>,
    /// What is done.
    #[serde(flatten)]
    pub operations: Counts,
    /// Ciphertexts from the client.
    pub ciphertexts: usize,
    /// Ciphertexts to the client.
    pub responses: usize,
    /// Bytes from the client.
    pub sent: u64,
    /// Bytes to the client.
    pub received: u64,
    /// What a result may be off by.
    pub error: f64,
}

/// A layer under every protocol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// GAZELLE at its cheapest parameters.
    pub gazelle: Entry,
    /// FALCON mod p at its cheapest parameters.
    pub falcon_ntt: Entry,
    /// FALCON as published.
    pub falcon: Entry,
    /// FALCON mod p at those parameters.
    pub same_parameters: Entry,
}

/// What a layer is measured with.
struct Subject<'a> {
    conv: &'a Conv,
    plain_bits: u32,
    weight: Vec<i32>,
    runs: usize,
    rng: Random,
}

/// Computes `conv` with weights and inputs of 8 bits `runs` times, in one thread, on numbers
/// that are made up.
///
/// # Errors
/// [`wire::Error::Misuse`] for layers that a protocol does not hold.
pub fn compare(conv: &Conv, runs: usize) -> Result<Compared> {
    let taps = conv.group_channels().saturating_mul(conv.kernel[0]).saturating_mul(conv.kernel[1]);
    let plain_bits = 2 * BITS + taps.max(1).ilog2() + 1;
    // Whoever cannot plan the layer says so before there are weights.
    ntt::Layer::new(conv, BITS, plain_bits)?;
    let words = Prg::new(&Seed([0; 16]), 0).uniform(taps * conv.out_channels, BITS);
    let weight = words.iter().map(|word| signed(*word, BITS) as i32).collect();
    let mut work = Subject { conv, plain_bits, weight, runs, rng: random()? };
    let (falcon, params) = work.falcon()?;
    Ok(Compared {
        gazelle: work.gazelle()?,
        falcon_ntt: work.falcon_ntt(None)?,
        falcon,
        same_parameters: work.falcon_ntt(Some(&params))?,
    })
}

impl Subject<'_> {
    fn gazelle(&mut self) -> Result<Entry> {
        let protocol = slots::Protocol::Gazelle;
        let layer = slots::Layer::new(self.conv, protocol, BITS, self.plain_bits, None)?;
        let measured = slots::Measurement::new(&layer, &self.weight, &mut self.rng)?;
        let timed = self.time(|rng| measured.timed(rng))?;
        let (counts, ciphertexts) = (layer.operations().into(), layer.ciphertexts());
        Ok(Entry::of(layer.describe(), timed, counts, ciphertexts, layer.cost()))
    }

    /// At `params`, or the cheapest.
    fn falcon_ntt(&mut self, params: Option<&Params>) -> Result<Entry> {
        let layer = ntt::Layer::new(self.conv, BITS, self.plain_bits)?;
        let layer = params.map_or(Ok(layer.clone()), |params| layer.with_params(params))?;
        let measured = ntt::Measurement::new(&layer, &self.weight, &mut self.rng)?;
        let timed = self.time(|rng| measured.timed(rng))?;
        let (counts, ciphertexts) = (layer.operations().into(), layer.ciphertexts());
        Ok(Entry::of(layer.describe(), timed, counts, ciphertexts, layer.cost()))
    }

    /// And its parameters.
    fn falcon(&mut self) -> Result<(Entry, Params)> {
        let leakage = falcon::AcceptLeakage::hiding_bits(HIDDEN_BITS);
        let layer = falcon::Layer::new(self.conv, BITS, self.plain_bits, leakage)?;
        let measured = falcon::Measurement::new(&layer, &self.weight, &mut self.rng)?;
        let timed = self.time(|rng| measured.timed(rng))?;
        let (counts, ciphertexts) = (layer.operations().into(), layer.ciphertexts());
        let entry = Entry::of(layer.describe(), timed, counts, ciphertexts, layer.cost());
        Ok((Entry { error: layer.error(), ..entry }, layer.params().clone()))
    }

    fn time(&mut self, timed: impl Fn(&mut Random) -> Result<Timed>) -> Result<Vec<Timed>> {
        (0..self.runs).map(|_| timed(&mut self.rng)).collect()
    }
}

impl Entry {
    fn of(
        protocol: String,
        timed: Vec<Timed>,
        operations: Counts,
        (ciphertexts, responses): (usize, usize),
        cost: Cost,
    ) -> Self {
        let seconds = |part: fn(&Timed) -> std::time::Duration| -> Vec<f64> {
            timed.iter().map(|timed| part(timed).as_secs_f64()).collect()
        };
        Self {
            protocol,
            encoding: timed.first().map_or(0.0, |timed| timed.encoding.as_secs_f64()),
            preparing: seconds(|timed| timed.preparing),
            computing: seconds(|timed| timed.computing),
            online: seconds(|timed| timed.online),
            operations,
            ciphertexts,
            responses,
            sent: cost.client_to_server,
            received: cost.server_to_client,
            error: 0.0,
        }
    }
}
