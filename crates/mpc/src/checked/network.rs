//! The public plan of a network.

use gc::tagged::{ALPHA_BITS, BitTags};
use graph::{Linear, Rounding};
use he::rlwe::{Params, TABLE};
use wire::{Error, Result};

use super::operand::{Addend, Operand};
use crate::auth::{COMBINATIONS, COVER_BITS, Shifted, key_ots};
use crate::garbled::checked::{Checked, Forest};
use crate::garbled::{Clip, Function};
use crate::linear::coefficient::{Layer, checked as linear};

/// Bits by which encrypted values stand above the modulus's lowest, at least: errors that pass the check
/// are below 2^17.2, so that they are worth less than a seventh of a last place of a layer's input.
const ABOVE_ERRORS: u32 = 20;

/// Most correlations of a run: both parties hold them, and a client plans what a server offers that it does
/// not trust.
const MOST_OTS: usize = 1 << 24;

/// Most bits of what a client enters: those of the keys of decision trees.
const MOST_ENTERED: u32 = 34;

/// The integers that the client enters: `batch` inputs of `count` from `low` to `low + 2^bits - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// How many inputs, at least 1, one after another in all that the parties hold.
    pub batch: usize,
    /// How many integers each has.
    pub count: usize,
    /// The least of them.
    pub low: i64,
    /// Bits of their distance from it, 1 to 34.
    pub bits: u32,
}

/// A linear layer that rounds exactly, and what follows it.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// The layer.
    pub linear: &'a Linear,
    /// The operand that it reads.
    pub input: Operand,
    /// The operand that is added to its accumulators, each integer times [`Linear::addend`].
    pub addend: Option<Operand>,
    /// Bits of what it leaves when it has dropped its low bits.
    pub out_bits: u32,
    /// The positions that each window of its maximum pool sees, if it has one, of all inputs.
    pub windows: Option<Vec<Vec<usize>>>,
    /// The clip of its ReLU, whose low end is 0, if it has one.
    pub clip: Option<Clip>,
}

/// What the client learns of the last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Every value.
    Values,
    /// The position of the largest, the first of equal ones.
    Largest,
    /// The sums of the leaves that these trees reach, whose comparisons are the values.
    Leaves(Forest),
}

/// The public plan of a network.
#[derive(Debug)]
pub struct Network {
    pub(super) params: Params,
    pub(super) entered: Entered,
    pub(super) stages: Vec<Stage>,
    /// Results, of which the client is shown all.
    pub(super) results: Operand,
    /// Bits of a result.
    pub(super) result_bits: u32,
    pub(super) tags: Tags,
}

/// A layer, the tags of its phases, and the circuits behind it.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) layer: Layer,
    pub(super) input: Operand,
    pub(super) addend: Option<Addend>,
    pub(super) phases: BitTags,
    /// The plan of these phases in prepared runs, where random integers are committed in their place.
    pub(super) shifts: Shifted,
    pub(super) circuits: Checked,
}

/// Tags of what the client commits to before the first layer.
#[derive(Debug)]
pub(super) struct Tags {
    pub(super) inputs: BitTags,
    /// Samples that cover combinations of errors.
    pub(super) covers: BitTags,
    /// Masks of combinations, of each kind.
    pub(super) masks: BitTags,
}

impl Network {
    /// Plans `layers` one after another, each reading what is `entered` or the results of layers before it. The
    /// client is `shown` something of the last.
    ///
    /// # Errors
    /// [`Error::Misuse`] for no layers, for layers that read what is not there or do not round exactly, for
    /// results that no layer reads, and for widths that no parameters hold.
    pub fn new(entered: Entered, layers: &[Block<'_>], shown: Shown) -> Result<Self> {
        let mut refused = Error::misuse("a network without layers");
        for (degree, bits) in TABLE {
            let params = Params::new(degree, bits).map_err(|e| Error::misuse(e.to_string()))?;
            match Self::with(params, entered, layers, shown) {
                Ok(network) => return Ok(network),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn with(params: Params, entered: Entered, layers: &[Block<'_>], shown: Shown) -> Result<Self> {
        let modulus = params.modulus_bits() + ALPHA_BITS;
        let rings = rings(layers)?;
        let Some((last, before)) = layers.split_last() else {
            return Err(Error::misuse("a network without layers"));
        };
        let mut stages: Vec<Stage> = Vec::with_capacity(layers.len());
        let count = entered.batch.saturating_mul(entered.count);
        let mut counts = vec![count];
        for (block, to) in before.iter().zip(rings.get(1..).unwrap_or_default()) {
            stages.push(Stage::new(params, block, entered.batch, *to)?.reading(&counts)?);
            counts.extend(stages.last().map(|stage| stage.circuits.count()));
        }
        stages.push(Stage::last(params, last, entered.batch, shown)?.reading(&counts)?);
        let of_input = rings.first().copied().unwrap_or_default();
        if !(1..=MOST_ENTERED).contains(&entered.bits) || of_input < entered.bits {
            return Err(Error::misuse("inputs of more bits than their layer has"));
        }
        let tags = Tags {
            inputs: BitTags::new(count, entered.bits, of_input + ALPHA_BITS)?,
            covers: BitTags::new(COMBINATIONS, COVER_BITS, modulus)?,
            masks: BitTags::new(COMBINATIONS, ALPHA_BITS, ALPHA_BITS)?,
        };
        let result_bits = match shown {
            Shown::Values => last.out_bits,
            Shown::Largest => position_bits(last),
            Shown::Leaves(forest) => forest.bits,
        };
        let sums = if let Shown::Leaves(forest) = shown { Some(forest.sums()) } else { None };
        let results = Operand { from: stages.len(), sums };
        let network = Self { params, entered, stages, results, result_bits, tags };
        match network.ots() {
            many if many > MOST_OTS => Err(Error::misuse(format!(
                "{many} committed bits, more than {MOST_OTS}; use smaller layers or a smaller --batch"
            ))),
            _ => Ok(network),
        }
    }

    /// Returns the layers, in order, for which the server has weights.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.stages.iter().map(|stage| &stage.layer)
    }

    /// Returns how many integers the client enters.
    pub fn inputs(&self) -> usize {
        self.entered.batch * self.entered.count
    }

    /// Returns the number of results.
    pub fn outputs(&self) -> usize {
        let made = || self.stages.last().map_or(0, |stage| stage.circuits.count());
        self.results.sums.as_ref().map_or_else(made, Vec::len)
    }

    /// Returns the signed width of a result.
    pub fn result_bits(&self) -> u32 {
        self.result_bits
    }

    /// Returns the correlated OTs that a run consumes; the server sends in them.
    pub fn ots(&self) -> usize {
        let Tags { inputs, covers, masks } = &self.tags;
        let phases: usize = self.stages.iter().map(|stage| stage.phases.labels()).sum();
        key_ots(self.params) + inputs.labels() + covers.labels() + 2 * masks.labels() + phases
    }

    /// Returns the parameters, for people.
    pub fn describe(&self) -> String {
        let gates: usize = self.stages.iter().map(Stage::and_gates).sum();
        format!("RLWE {} under a committed key, {gates} gates garbled by the server", self.params)
    }
}

impl Block<'_> {
    /// Bits of the accumulator that the layer keeps.
    fn plain_bits(&self) -> u32 {
        self.out_bits + self.linear.shift
    }

    /// Returns the operand that is added to the accumulators, with its multiplier.
    fn added(&self) -> Result<Option<Addend>> {
        match (&self.addend, self.linear.addend) {
            (None, None) => Ok(None),
            (Some(operand), Some(multiplier)) => {
                Ok(Some(Addend { operand: operand.clone(), multiplier }))
            }
            _ => Err(Error::misuse("an addend without a multiplier, or one without the other")),
        }
    }
}

/// For what is entered and for the results of each layer but the last, the bits of the ring that they are
/// shared in: those of the widest layer that reads them.
fn rings(layers: &[Block<'_>]) -> Result<Vec<u32>> {
    let mut rings = vec![0; layers.len()];
    for (at, block) in layers.iter().enumerate() {
        for operand in std::iter::once(&block.input).chain(&block.addend) {
            match rings.get_mut(operand.from) {
                Some(ring) if operand.from <= at => *ring = block.plain_bits().max(*ring),
                _ => return Err(Error::misuse("a layer that reads what is not there")),
            }
        }
    }
    if rings.contains(&0) {
        return Err(Error::misuse("results that no layer reads"));
    }
    Ok(rings)
}

/// Bits that the circuits drop of a layer's shares: those of its rescale, and those below a last place.
fn dropped(layer: &Layer, block: &Block<'_>) -> u32 {
    block.linear.shift + layer.result_bits() - layer.plain_bits()
}

/// Signed bits of a position among a layer's results.
fn position_bits(block: &Block<'_>) -> u32 {
    block.linear.conv.out_channels.max(2).next_power_of_two().ilog2() + 1
}

impl Stage {
    /// The last layer.
    fn last(params: Params, block: &Block<'_>, batch: usize, shown: Shown) -> Result<Self> {
        let stage = Self::new(params, block, batch, block.out_bits)?;
        let (bits, from) = (stage.layer.result_bits(), (stage.layer.phase_bits(), stage.skipped()));
        match shown {
            Shown::Values => return Ok(stage),
            Shown::Leaves(forest) => {
                let circuits = Checked::leaves(forest, from, bits)?;
                let fits = block.clip.is_none()
                    && block.windows.is_none()
                    && circuits.inputs() == stage.layer.outputs();
                return fits
                    .then_some(Self { circuits, ..stage })
                    .ok_or_else(|| Error::misuse("trees of other comparisons than their layer's"));
            }
            Shown::Largest => {}
        }
        let classes = stage.layer.outputs() / batch.max(1);
        if block.clip.is_some() || block.windows.is_some() || classes < 2 {
            return Err(Error::misuse(
                "the largest of a single result, or behind a ReLU or a pool",
            ));
        }
        let drop = dropped(&stage.layer, block);
        let circuits = Checked::top([batch, classes], from, bits, drop, position_bits(block))?;
        Ok(Self { circuits, ..stage })
    }

    /// The layer and its circuits, whose results are shared mod 2^to.
    fn new(params: Params, block: &Block<'_>, batch: usize, to: u32) -> Result<Self> {
        let Block { linear, out_bits, windows, clip, .. } = block;
        if linear.rounding != Rounding::Exact
            || block.plain_bits() + ABOVE_ERRORS > params.modulus_bits()
        {
            return Err(Error::misuse(
                "accumulators too wide to stand above errors; use fewer bits",
            ));
        }
        // The layer is planned without its addend: both parties add that to the tagged phases themselves.
        let alone = Linear { addend: None, ..Linear::clone(linear) };
        let layer = linear::plan(&alone, *out_bits, batch, params)?;
        let (phase_bits, result_bits) = (layer.phase_bits(), layer.result_bits());
        let phases = BitTags::new(layer.outputs(), phase_bits, phase_bits + ALPHA_BITS)?;
        let shifts = Shifted::new(layer.outputs(), phase_bits, phase_bits - result_bits)?;
        let then = Function { drop: dropped(&layer, block), floor: true, clip: *clip };
        let from = (phase_bits, phase_bits - result_bits);
        let circuits = match windows {
            None => Checked::map(layer.outputs(), from, result_bits, then, to)?,
            Some(windows) => {
                Checked::maximum((layer.outputs(), windows), from, result_bits, then, to)?
            }
        };
        let (input, addend) = (block.input.clone(), block.added()?);
        Ok(Self { layer, input, addend, phases, shifts, circuits })
    }

    /// The same, if it reads as many integers as it has inputs and outputs, of tensors of so many.
    fn reading(self, counts: &[usize]) -> Result<Self> {
        let added = self.addend.as_ref().map(|addend| addend.operand.count(counts)).transpose()?;
        if self.input.count(counts)? != self.layer.inputs()
            || added.is_some_and(|added| added != self.layer.outputs())
        {
            return Err(Error::misuse("layers that do not follow each other"));
        }
        Ok(self)
    }

    pub(super) fn and_gates(&self) -> usize {
        self.circuits.and_gates() * self.circuits.instances()
    }

    /// Low bits of phases that do not enter the circuits.
    pub(super) fn skipped(&self) -> u32 {
        self.layer.phase_bits() - self.layer.result_bits()
    }
}
