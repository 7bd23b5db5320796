//! The public plan of a layer: parameters and packing of the fewest bytes, among
//! them the one of the least work, among them the first; or another that takes less work
//! for more bytes.

use std::collections::BTreeMap;

use graph::{Conv, Linear, Rounding};
use he::rlwe::{self, Params, noise};
use pricing::fixed::lattice::direct::ENCRYPTED;
use wire::{Cost, Error, Packed, Result, Role, Segment, tags};

use super::known::Known;
use super::packing::Folding;
use super::product;
use crate::linear::transport::rlwe::{Rescaling, Sent};
use crate::linear::transport::{ServerKeys, chunks};
use pricing::{Unit, Work};

/// The tag of ciphertexts from the client: seed and body of each.
pub(super) const INPUTS: u8 = tags::COEFFICIENT_INPUTS;
/// The tag of responses from the server: c1 and the useful part of c0 of each.
pub(super) const RESPONSES: u8 = tags::COEFFICIENT_RESPONSES;

/// Most ciphertexts each way in one layer: a plan from outside is priced before it
/// is accepted, and that takes memory for each.
pub(super) const MOST_CIPHERTEXTS: usize = 1 << 20;

/// Most plans of one layer that are told apart.
pub const MOST_PACKINGS: usize = 4;
/// Bytes that a packing may take, in those of the leanest.
const MORE_BYTES: u64 = 4;
/// A packing of more bytes saves at least one part in so many of the work.
const WORTH: usize = 20;

/// Parameters of a packing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) params: Params,
    /// The lowest bits of the client's bodies, which are not sent.
    pub(super) dropped: u32,
    pub(super) response_bits: u32,
}

/// The public plan of a linear layer.
#[derive(Clone, Debug)]
pub struct Layer {
    pub(super) conv: Conv,
    pub(super) packing: Folding,
    pub(super) params: Params,
    /// The lowest bits of the client's bodies, which are not sent.
    pub(super) dropped: u32,
    pub(super) response_bits: u32,
    pub(super) plain_bits: u32,
    /// Bits of shares below an exact result.
    pub(super) below: u32,
    /// Largest magnitude of a weight.
    pub(super) largest: u64,
    /// Bits of the largest sum of the squares of an output channel's weights, where it is known.
    pub(super) square_bits: Option<u32>,
    pub(super) out_bits: u32,
    pub(super) rounding: Rounding,
    pub(super) addend: Option<i64>,
    /// Whether e0 covers a key of any errors.
    pub(super) covered: bool,
    /// Runs whose inputs are encrypted together, before any of them exists.
    pub(super) runs: usize,
    pub(super) known: Known,
}

impl Layer {
    /// Plans `linear` for results of `out_bits`, of `batch` inputs (at least 1) at a
    /// time. Stochastic rounding yields shares mod 2^out_bits of the rescaled result,
    /// exact rounding shares mod 2^(out_bits + shift + 4), see [`super`].
    ///
    /// # Errors
    /// [`Error::Misuse`] when no secure parameters hold the precision, or every packing
    /// takes too many ciphertexts.
    pub fn new(linear: &Linear, out_bits: u32, batch: usize) -> Result<Self> {
        let mut best: Option<(u64, usize, Self)> = None;
        let mut priced = false;
        for (degree, _) in rlwe::TABLE {
            // What one weight asks for is the least that any packing asks for.
            let least = parameters(linear, out_bits, degree, 1);
            for packing in Folding::candidates(&linear.conv, batch, degree, 0) {
                if packing.inputs().max(packing.responses()) > MOST_CIPHERTEXTS {
                    continue;
                }
                priced = true;
                let Some(least) = least else { break };
                let most = best.as_ref().map_or(u64::MAX, |(bytes, ..)| *bytes);
                if payload(&packing, least) > most {
                    continue;
                }
                let weights = packing.weights_per_response();
                let Some(chosen) = parameters(linear, out_bits, degree, weights) else { continue };
                let (bytes, work) = (payload(&packing, chosen), packing.work());
                if best.as_ref().is_none_or(|(b, w, _)| (bytes, work) < (*b, *w)) {
                    best = Some((bytes, work, Self::of(linear, out_bits, packing, chosen)));
                }
            }
        }
        best.map(|(.., layer)| layer).ok_or_else(|| refusal(linear, out_bits, priced))
    }

    /// Plans `linear` as [`Layer::new`] does, then with more bytes and less work each time,
    /// 1 to [`MOST_PACKINGS`] plans.
    ///
    /// # Errors
    /// As [`Layer::new`].
    pub fn packings(linear: &Linear, out_bits: u32, batch: usize) -> Result<Vec<Self>> {
        let first = Self::new(linear, out_bits, batch)?;
        let (most, mut all) = (MORE_BYTES * first.payload(), Vec::new());
        for (degree, _) in rlwe::TABLE {
            let mut known = BTreeMap::new();
            let Some(least) = parameters(linear, out_bits, degree, 1) else { continue };
            for packing in Folding::candidates(&linear.conv, batch, degree, 0) {
                let weights = packing.weights_per_response();
                if packing.inputs().max(packing.responses()) > MOST_CIPHERTEXTS
                    || payload(&packing, least) > most
                {
                    continue;
                }
                let chosen = known
                    .entry(weights)
                    .or_insert_with(|| parameters(linear, out_bits, degree, weights));
                let Some(chosen) = *chosen else { continue };
                let bytes = payload(&packing, chosen);
                if bytes <= most {
                    all.push((bytes, labour(&packing, chosen.params), packing, chosen));
                }
            }
        }
        all.sort_by_key(|(bytes, labour, ..)| (*bytes, *labour));
        // A packing is kept if it saves a part of the work that is worth its bytes.
        let mut least = labour(&first.packing, first.params);
        let mut chosen = vec![first];
        for (_, labour, packing, parameters) in all {
            if chosen.len() < MOST_PACKINGS && labour < least - least / WORTH {
                least = labour;
                chosen.push(Self::of(linear, out_bits, packing, parameters));
            }
        }
        Ok(chosen)
    }

    /// How phases and masks become shares of the result.
    pub(super) fn rescaling(&self) -> Rescaling {
        Rescaling {
            rounding: self.rounding,
            plain_bits: self.plain_bits,
            out_bits: self.out_bits,
            result_bits: self.result_bits(),
        }
    }

    fn payload(&self) -> u64 {
        let Self { params, dropped, response_bits, .. } = *self;
        payload(&self.packing, Chosen { params, dropped, response_bits })
    }

    pub(super) fn of(linear: &Linear, out_bits: u32, packing: Folding, chosen: Chosen) -> Self {
        Self {
            conv: linear.conv.clone(),
            packing,
            params: chosen.params,
            dropped: chosen.dropped,
            response_bits: chosen.response_bits,
            plain_bits: out_bits + linear.shift,
            below: rlwe::EXACT_BITS,
            largest: largest(linear),
            square_bits: linear.square_bits,
            out_bits,
            rounding: linear.rounding,
            addend: linear.addend,
            covered: false,
            runs: 1,
            known: Known::default(),
        }
    }

    /// The noise of a response.
    pub(super) fn noise(&self) -> noise::Noise {
        let noise = noise::Noise::new(self.params, self.load(), self.response_bits);
        if self.covered { noise.covered() } else { noise }
    }

    /// Returns the encryption parameters.
    pub fn params(&self) -> Params {
        self.params
    }

    /// Returns the number of values of the output, of all inputs that are encrypted together.
    pub fn outputs(&self) -> usize {
        self.packing.image_outputs() * self.packing.batch()
    }

    /// Returns the number of values of the input, of all inputs that are encrypted together.
    pub fn inputs(&self) -> usize {
        self.packing.image_inputs() * self.packing.batch()
    }

    /// Returns the number of ciphertexts both ways.
    pub fn ciphertexts(&self) -> usize {
        self.packing.inputs() + self.packing.responses()
    }

    /// Returns whether it is a matrix times a vector.
    pub fn is_fully_connected(&self) -> bool {
        self.conv.is_fully_connected()
    }

    /// Returns P, the width to which input and addend shares are reduced.
    pub fn plain_bits(&self) -> u32 {
        self.plain_bits
    }

    /// Returns K', the width of the phases of responses.
    pub fn phase_bits(&self) -> u32 {
        self.response_bits
    }

    /// Returns the width of the resulting shares.
    pub fn result_bits(&self) -> u32 {
        match self.rounding {
            Rounding::Stochastic => self.out_bits,
            Rounding::Exact => self.plain_bits + self.below,
        }
    }

    /// Returns the parameters and packing, for people.
    pub fn describe(&self) -> String {
        let packing = &self.packing;
        let (inputs, responses) = (packing.inputs(), packing.responses());
        let kernel = product::kernel(self).name();
        let folded = match self.levels() {
            0 => String::new(),
            levels => format!(" of up to {} blocks", 1 << levels),
        };
        format!("RLWE {}, {inputs} in{folded}, {responses} out, {packing}, {kernel}", self.params)
    }

    /// Returns a bound on the probability that a result of a run is off by more than its width has
    /// room for, or an exact one by anything.
    pub fn failure(&self) -> f64 {
        let one = match (self.covered, self.rounding) {
            (true, Rounding::Exact) => self.noise().beyond(self.result_bits(), self.room()),
            _ => self.rescaling().failure(self.noise()),
        };
        self.run_outputs() as f64 * one
    }

    /// What the error of the shares of an exact result of a covered layer may be, in units of their last place: half of
    /// what is dropped, and the floor of both shares, which an error includes.
    pub(super) fn room(&self) -> f64 {
        f64::from((1 << self.below) - 1) / 2.0 + 1.0
    }

    /// Returns what a run costs.
    pub fn cost(&self) -> Cost {
        self.asks().then(self.answers())
    }

    /// Returns what the client sends of it.
    pub fn asks(&self) -> Cost {
        let inputs = chunks(self.input_layouts());
        inputs.iter().map(|l| Cost::message(Role::Client, Packed::<INPUTS>::body_len(l))).collect()
    }

    /// Returns what the server sends of it.
    pub fn answers(&self) -> Cost {
        let responses = chunks(self.response_layouts());
        responses
            .iter()
            .map(|l| Cost::message(Role::Server, Packed::<RESPONSES>::body_len(l)))
            .collect()
    }

    /// Returns the number of bytes of the responses where they are held back.
    pub fn held_bytes(&self) -> usize {
        let each = 8 * self.params.degree();
        self.packing.responses().saturating_mul(each).saturating_add(8 * self.outputs())
    }

    /// Multiplications of a run of the same layer in the clear.
    pub fn clear_work(&self) -> usize {
        let taps = self.conv.group_channels() * self.conv.kernel[0] * self.conv.kernel[1];
        self.run_outputs().saturating_mul(taps)
    }

    /// Returns what both parties do in a run, beside the messages.
    pub fn work(&self) -> Work {
        let degree = self.params.degree() as f64;
        let (inputs, responses) = (self.packing.inputs() as f64, self.packing.responses() as f64);
        let (pairs, operands) = (self.packing.pairs() as f64, self.packing.polynomials() as f64);
        let both = Work::of(Unit::Encrypted, inputs * degree)
            .and(Unit::Answered, responses * degree)
            .and(Unit::Kept, self.outputs() as f64)
            .and(Unit::Transformed, inputs * self.unfolding() * degree);
        // Weights that the server does not keep are transformed once for each product.
        let again = product::again(&self.packing, self.params) as f64;
        match self.direct_work() {
            Some(work) => both.and(Unit::Direct, pairs * work as f64),
            None => both
                .and(Unit::Transformed, 2.0 * degree * (operands + responses) + again)
                .and(Unit::Pointwise, 2.0 * degree * pairs),
        }
    }

    /// Returns what encoding the weights of a layer of one tile takes, of layers that are encoded
    /// online.
    pub fn encoding(&self) -> Work {
        let coefficients = self.packing.pairs() as f64 * self.params.degree() as f64;
        match self.direct_work() {
            Some(_) => Work::of(Unit::Local, self.clear_work() as f64),
            None => Work::of(Unit::Transformed, 2.0 * coefficients),
        }
    }

    /// Whether `keys` can answer this layer.
    pub(super) fn check_keys(&self, keys: &ServerKeys<'_>) -> Result<()> {
        match keys.fit(self.params, self.levels()) {
            true => Ok(()),
            false => Err(Error::misuse("a key that does not fit the layer")),
        }
    }

    /// Layout of each input ciphertext.
    pub(super) fn input_layouts(&self) -> Vec<Vec<Segment>> {
        vec![self.sent().layout(); self.packing.inputs()]
    }
}

/// Parameters at `degree` for `weights` weights per response, if there are any.
pub(super) fn parameters(
    linear: &Linear,
    out_bits: u32,
    degree: usize,
    weights: usize,
) -> Option<Chosen> {
    let plain_bits = out_bits + linear.shift;
    let load = noise::Load::bounded(weights, largest(linear));
    let chosen = match linear.rounding {
        Rounding::Exact => noise::exact_at(degree, plain_bits, load),
        Rounding::Stochastic => noise::stochastic_at(degree, plain_bits, out_bits, load),
    };
    let (params, response_bits) = chosen.ok()?;
    Some(Chosen { params, dropped: 0, response_bits })
}

/// About the work of both parties, in multiplications of the direct kernel.
pub(super) fn labour(packing: &Folding, params: Params) -> usize {
    let degree = params.degree();
    let ciphertexts = packing.polynomials().saturating_add(packing.responses());
    let outputs = packing.image_outputs() * packing.batch();
    let useful = outputs.div_ceil(packing.responses().max(1));
    let direct = packing.work().saturating_mul(degree + useful);
    let transformed = product::transformed(packing, params);
    direct.min(transformed).saturating_add(ciphertexts.saturating_mul(degree * ENCRYPTED))
}

/// The largest magnitude that a weight of its width has.
pub(super) fn largest(linear: &Linear) -> u64 {
    1 << (linear.weight_bits.clamp(1, 31) - 1)
}

/// Bytes both ways without headers.
pub(super) fn payload(packing: &Folding, chosen: Chosen) -> u64 {
    let Chosen { params, dropped, response_bits } = chosen;
    let degree = params.degree() as u64;
    let outputs = packing.image_outputs() * packing.batch();
    let input = Sent { params, bits: 0, dropped }.bytes();
    let response = degree * u64::from(response_bits) / 8;
    let useful = outputs as u64 * u64::from(response_bits) / 8;
    packing.inputs() as u64 * input + packing.responses() as u64 * response + useful
}

fn refusal(linear: &Linear, out_bits: u32, priced: bool) -> Error {
    let plain_bits = out_bits + linear.shift;
    match priced {
        false => Error::misuse(format!(
            "every packing of this layer takes more than {MOST_CIPHERTEXTS} ciphertexts; \
             use smaller layers or kernels that reach less far"
        )),
        true => Error::misuse(format!(
            "a {plain_bits}-bit accumulator over {} weights per output demands more precision \
             than 128-bit secure parameters have; use fewer weight or activation bits, \
             or smaller layers",
            linear.conv.group_channels() * linear.conv.kernel[0] * linear.conv.kernel[1]
        )),
    }
}
