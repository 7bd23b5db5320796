//! Protocols on many elements, cut into slices that bound the memory they take.

use std::ops::Range;

use mpc::argmax::Argmax;
use mpc::comet::smu::{self, Smu};
use mpc::comet::softmax::{self as relu_softmax, ReluSoftmax};
use mpc::extend::Extend;
use mpc::garbled::Garbled;
use mpc::lookup::Lookup;
use mpc::maximum::Maximum;
use mpc::multiply::Multiply;
use mpc::prime::{Enter, Leave};
use mpc::relu::Relu;
use mpc::sign::Signs;
use mpc::square::Square;
use mpc::transformer::gelu::{self, Gelu};
use mpc::transformer::layernorm::{self, LayerNorm};
use mpc::transformer::softmax::{self, Softmax};
use mpc::truncate::Truncate;
use mpc::{
    Effort, Need, Pads, Share, argmax, extend, garbled, lookup, maximum, multiply, prime, relu,
    sign, square, truncate,
};
use ot::Job;
use wire::{Channel, Cost, Error, Phase, Result};

use crate::offline::Offline;
use crate::plan::Spent;
use crate::steps::Step;

/// Bytes of pads that a party makes at a time.
pub(crate) const MOST_BYTES: usize = 128 << 20;

/// Elements that a protocol works on at a time.
const MOST_ELEMENTS: usize = 1 << 20;

/// One run of a protocol on shares.
#[derive(Debug)]
pub enum Nonlinear {
    /// ReLU with saturation and extension.
    Relu(Relu),
    /// Max pooling.
    MaxPool(Maximum),
    /// Position of the largest value.
    Argmax(Argmax),
    /// Exact truncation.
    Truncate(Truncate),
    /// Extension to a wider ring.
    Extend(Extend),
    /// Sign bits.
    Signs(Signs),
    /// A function of few bits, by a table that is public; one party reads it.
    Lookup(Lookup, Vec<u64>),
    /// Products of two tensors.
    Multiply(Multiply),
    /// Squares.
    Square(Square),
    /// GELU with saturation.
    Gelu(Box<Gelu>),
    /// Softmax of rows.
    Softmax(Box<Softmax>),
    /// Layer norm of rows.
    LayerNorm(Box<LayerNorm>),
    /// A smooth maximum.
    Smu(Box<Smu>),
    /// Smooth maxima of rows as parts of their sums, where a mask is 1 if there is one.
    ReluSoftmax(Box<ReluSoftmax>),
    /// Shares mod a power of two to shares mod a prime.
    Enter(Enter),
    /// And back.
    Leave(Leave),
    /// Garbled circuits.
    Garbled(Garbled),
    /// Label and denominator of the top class's probability, one after the other.
    Probability(Box<mpc::softmax::Plan>),
}

impl Nonlinear {
    /// Transfers it consumes.
    pub(crate) fn need(&self) -> Need {
        match self {
            Self::Relu(plan) => plan.need(),
            Self::MaxPool(plan) => plan.need(),
            Self::Argmax(plan) => plan.need(),
            Self::Truncate(plan) => plan.need(),
            Self::Extend(plan) => plan.need(),
            Self::Signs(plan) => plan.need(),
            Self::Lookup(plan, _) => plan.need(),
            Self::Multiply(plan) => plan.need(),
            Self::Square(plan) => plan.need(),
            Self::Gelu(plan) => plan.need(),
            Self::Softmax(plan) => plan.need(),
            Self::LayerNorm(plan) => plan.need(),
            Self::Smu(plan) => plan.need(),
            Self::ReluSoftmax(plan) => plan.need(),
            Self::Enter(plan) => plan.need(),
            Self::Leave(plan) => plan.need(),
            Self::Garbled(plan) => plan.need(),
            Self::Probability(plan) => plan.need(),
        }
    }

    fn cost(&self) -> Cost {
        match self {
            Self::Relu(plan) => plan.cost(),
            Self::MaxPool(plan) => plan.cost(),
            Self::Argmax(plan) => plan.cost(),
            Self::Truncate(plan) => plan.cost(),
            Self::Extend(plan) => plan.cost(),
            Self::Signs(plan) => plan.cost(),
            Self::Lookup(plan, _) => plan.cost(),
            Self::Multiply(plan) => plan.cost(),
            Self::Square(plan) => plan.cost(),
            Self::Gelu(plan) => plan.cost(),
            Self::Softmax(plan) => plan.cost(),
            Self::LayerNorm(plan) => plan.cost(),
            Self::Smu(plan) => plan.cost(),
            Self::ReluSoftmax(plan) => plan.cost(),
            Self::Enter(plan) => plan.cost(),
            Self::Leave(plan) => plan.cost(),
            Self::Garbled(plan) => plan.cost(),
            Self::Probability(plan) => plan.cost(),
        }
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], pads: Pads) -> Result<Share> {
        let input = |i: usize| inputs.get(i).ok_or_else(|| Error::misuse("a step without input"));
        let x = input(0)?;
        match self {
            Self::Relu(plan) => relu::run(channel, plan, x, pads),
            Self::MaxPool(plan) => {
                let winners = maximum::run(channel, plan, x, None, pads)?.pop();
                winners.ok_or_else(|| Error::misuse("a maximum without output"))
            }
            Self::Argmax(plan) => argmax::run(channel, plan, x, pads),
            Self::Truncate(plan) => truncate::run(channel, plan, x, pads),
            Self::Extend(plan) => extend::run(channel, plan, x, pads),
            Self::Signs(plan) => sign::run(channel, plan, x, pads),
            Self::Lookup(plan, table) => {
                let table: &[u64] = if channel.role() == plan.holder() { table } else { &[] };
                lookup::run(channel, plan, x, table, pads)
            }
            Self::Multiply(plan) => multiply::run(channel, plan, x, input(1)?, pads),
            Self::Square(plan) => square::run(channel, plan, x, pads),
            Self::Gelu(plan) => gelu::run(channel, plan, x, pads),
            Self::Softmax(plan) => softmax::run(channel, plan, x, pads),
            Self::LayerNorm(plan) => layernorm::run(channel, plan, x, pads),
            Self::Smu(plan) => smu::run(channel, plan, x, pads),
            Self::ReluSoftmax(plan) => relu_softmax::run(channel, plan, x, inputs.get(1), pads),
            Self::Enter(plan) => prime::enter(channel, plan, x, pads),
            Self::Leave(plan) => prime::leave(channel, plan, x, pads),
            Self::Garbled(plan) => garbled::run(channel, plan, x, pads),
            Self::Probability(plan) => {
                let (label, denominator) = mpc::softmax::run(channel, plan, x, pads)?;
                let words = [label.words(), denominator.words()].concat();
                Ok(Share::new(words, denominator.bits()))
            }
        }
    }

    /// What it computes, in one word.
    pub(crate) fn operator(&self) -> &'static str {
        match self {
            Self::Relu(_) => "relu",
            Self::MaxPool(_) => "max pool",
            Self::Argmax(_) => "argmax",
            Self::Truncate(_) => "truncate",
            Self::Extend(_) => "extend",
            Self::Signs(_) => "sign",
            Self::Lookup(..) => "lookup",
            Self::Multiply(_) => "multiply",
            Self::Square(_) => "square",
            Self::Gelu(_) => "gelu",
            Self::Softmax(_) => "softmax",
            Self::LayerNorm(_) => "layer norm",
            Self::Smu(_) => "smooth maximum",
            Self::ReluSoftmax(_) => "softmax",
            Self::Enter(_) => "enter prime",
            Self::Leave(_) => "leave prime",
            Self::Garbled(_) => "circuit",
            Self::Probability(_) => "probability",
        }
    }

    /// The protocol, for people.
    fn protocol(&self) -> &'static str {
        match self {
            Self::Relu(_) | Self::MaxPool(_) | Self::Argmax(_) | Self::Signs(_) => {
                "comparison by OT"
            }
            Self::Truncate(_) => "exact truncation by OT",
            Self::Extend(_) | Self::Enter(_) => "wrap bit by OT",
            Self::Leave(_) => "comparison with the prime by OT",
            Self::Lookup(..) => "table by OT",
            Self::Gelu(_) => "comparison and table by OT",
            Self::Softmax(plan) => match plan.and_gates() {
                0 => "maximum, tables and products by OT",
                _ => "maximum, tables and products by OT, reciprocals by garbled circuits",
            },
            Self::LayerNorm(plan) => match plan.and_gates() {
                0 => "squares, inverse roots and products by OT",
                _ => "squares and products by OT, inverse roots by garbled circuits",
            },
            Self::Smu(_) | Self::ReluSoftmax(_) => "Newton's iterations by OT",
            Self::Multiply(_) | Self::Square(_) => "products by OT",
            Self::Garbled(_) | Self::Probability(_) => "garbled circuits",
        }
    }
}

/// A protocol on a part of the elements.
#[derive(Debug)]
pub struct Slice {
    /// The elements of each input that it reads.
    input: Range<usize>,
    plan: Nonlinear,
}

/// A protocol on all elements of a layer, one slice after another, each right after
/// the correlations that it consumes.
#[derive(Debug)]
pub struct Sliced(Vec<Slice>);

impl Sliced {
    /// `count` results, each from the element at the same place; `plan` makes the
    /// protocol for some of them.
    ///
    /// # Errors
    /// What `plan` returns.
    pub(crate) fn new(count: usize, plan: impl Fn(usize) -> Result<Nonlinear>) -> Result<Self> {
        Self::cut(count, |range| Ok(Slice { plan: plan(range.len())?, input: range }))
    }

    /// `count` results; `slice` makes the protocol for a range of them.
    ///
    /// # Errors
    /// What `slice` returns.
    pub(crate) fn cut(count: usize, slice: impl Fn(Range<usize>) -> Result<Slice>) -> Result<Self> {
        let whole = slice(0..count)?;
        let bytes = pad_bytes(&whole.plan.need());
        let slices = bytes.div_ceil(MOST_BYTES).max(whole.input.len().div_ceil(MOST_ELEMENTS));
        if slices <= 1 {
            return Ok(Self(vec![whole]));
        }
        // Whole machine words of bits.
        let each = count.div_ceil(slices).next_multiple_of(512);
        let ranges = (0..count).step_by(each).map(|start| start..count.min(start + each));
        Ok(Self(ranges.map(slice).collect::<Result<_>>()?))
    }

    /// `rows` of `cols` values; `plan` makes the protocol for some rows.
    ///
    /// # Errors
    /// What `plan` returns.
    pub(crate) fn rows(
        rows: usize,
        cols: usize,
        plan: impl Fn(usize) -> Result<Nonlinear>,
    ) -> Result<Self> {
        Self::cut(rows, |range| {
            Ok(Slice { plan: plan(range.len())?, input: range.start * cols..range.end * cols })
        })
    }

    /// One run, however large.
    pub(crate) fn whole(inputs: usize, plan: Nonlinear) -> Self {
        Self(vec![Slice { input: 0..inputs, plan }])
    }

    /// Windows over a tensor that lie in the order of what they see.
    ///
    /// # Errors
    /// What `plan` returns for the number of inputs and windows over them.
    pub(crate) fn windows(
        windows: &[Vec<usize>],
        plan: impl Fn(usize, &[Vec<usize>]) -> Result<Nonlinear>,
    ) -> Result<Self> {
        Self::cut(windows.len(), |range| {
            let windows = windows.get(range).unwrap_or_default();
            let positions = || windows.iter().flatten().copied();
            let (start, end) =
                (positions().min().unwrap_or(0), positions().max().map_or(0, |i| i + 1));
            if start == 0 {
                return Ok(Slice { plan: plan(end, windows)?, input: start..end });
            }
            let moved = |window: &Vec<usize>| window.iter().map(|i| i - start).collect();
            let moved: Vec<Vec<usize>> = windows.iter().map(moved).collect();
            Ok(Slice { plan: plan(end - start, &moved)?, input: start..end })
        })
    }

    /// The one kind of protocol that all slices run.
    pub(crate) fn kind(&self) -> Option<&Nonlinear> {
        self.0.first().map(|slice| &slice.plan)
    }

    /// How many slices.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Transfers of all slices.
    pub(crate) fn need(&self) -> Need {
        self.0.iter().map(|slice| slice.plan.need()).sum()
    }

    /// What all slices cost online.
    pub(crate) fn cost(&self) -> Cost {
        self.0.iter().map(|slice| slice.plan.cost()).collect()
    }

    /// What all slices take online.
    pub(crate) fn spent(&self) -> Spent {
        self.parts().map(|(_, spent)| spent).collect()
    }

    /// Slice by slice, what it consumes and takes online.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Need, Spent)> {
        self.0.iter().map(|slice| {
            let (need, cost) = (slice.plan.need(), slice.plan.cost());
            let effort = Effort::online(&need, cost);
            (need, Spent { cost, effort })
        })
    }

    /// The protocol, for people.
    pub(crate) fn protocol(&self) -> String {
        let mut protocol = self.kind().map_or("", Nonlinear::protocol).to_owned();
        let smooth = match self.kind() {
            Some(Nonlinear::Smu(plan)) => Some(plan.function()),
            Some(Nonlinear::ReluSoftmax(plan)) => Some(&plan.function().smu),
            _ => None,
        };
        if let Some(smooth) = smooth {
            protocol += &format!(", {} of them", smooth.iterations);
        }
        match self.len() {
            0 | 1 => protocol,
            slices => format!("{protocol}, {slices} slices"),
        }
    }

    /// Runs slice after slice.
    pub(crate) fn run(
        &self,
        channel: &mut Channel,
        inputs: Vec<Share>,
        feed: &mut Feed<'_>,
    ) -> Result<Share> {
        // Windows may leave out the last rows and columns.
        let all = |slice: &Slice| inputs.iter().all(|share| slice.input == (0..share.len()));
        if let [slice] = self.0.as_slice()
            && all(slice)
        {
            let pads = feed.take(channel, &slice.plan.need())?;
            return slice.plan.run(channel, &inputs, pads);
        }
        let (mut words, mut bits) = (Vec::new(), 0);
        for slice in &self.0 {
            let pads = feed.take(channel, &slice.plan.need())?;
            let part = |share: &Share| share.gather(slice.input.clone());
            let parts: Vec<Share> = inputs.iter().map(part).collect();
            let result = slice.plan.run(channel, &parts, pads)?;
            words.extend_from_slice(result.words());
            bits = result.bits();
        }
        Ok(Share::new(words, bits))
    }
}

/// Where a step takes its pads from.
pub(crate) enum Feed<'a> {
    /// Made before for a whole stretch of steps.
    Made(&'a mut Pads),
    /// Made when they are asked for, in the middle of this step.
    Later(&'a mut Offline, usize),
}

impl<'a> Feed<'a> {
    /// What `step` takes, the plan's `index`-th: part of `pads`, or nothing of them.
    pub(crate) fn of(
        step: &Step,
        index: usize,
        pads: &'a mut Pads,
        offline: &'a mut Offline,
    ) -> Self {
        if step.feeds_itself() { Self::Later(offline, index) } else { Self::Made(pads) }
    }

    fn take(&mut self, channel: &mut Channel, need: &Need) -> Result<Pads> {
        match self {
            Self::Made(pads) => pads.split(channel.role(), need),
            Self::Later(offline, step) => {
                let pads = offline.prepare(channel, need)?;
                channel.enter(Phase::Online, Some(*step));
                Ok(pads)
            }
        }
    }
}

/// What the party that holds more holds: of transfers the sender, of circuits the evaluator.
pub(crate) fn pad_bytes(need: &Need) -> usize {
    let entry = |job: &Job| {
        let planes = job.entry.planes().saturating_mul(job.count.div_ceil(8));
        planes.saturating_add(job.entry.words().count().saturating_mul(8 * job.count))
    };
    let jobs = need.client_sends.iter().chain(&need.server_sends);
    let circuits = need.table_bytes();
    jobs.fold(circuits, |sum, job| sum.saturating_add(entry(job).saturating_mul(job.entries())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use graph::{FloatTensor, Floats, Ranges, Rounding, Source};

    use crate::plan::{Reveal, Settings};
    use crate::tests::{clear, costs_as_planned, run};

    #[test]
    fn layers_of_a_million_values_run_in_slices() {
        let source = r#"{"name":"large","input":{"name":"x","shape":[1,1050,1000]},"output":"y","nodes":[
          {"name":"conv","op":"Conv","inputs":["x"],"output":"a","kernel":[1,1],"stride":[1,1],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"w"},
          {"name":"relu","op":"Relu","inputs":["a"],"output":"b","maximum":null},
          {"name":"pool","op":"MaxPool","inputs":["b"],"output":"c","kernel":[2,2],"stride":[2,2],"padding":[0,0,0,0]},
          {"name":"conv2","op":"Conv","inputs":["c"],"output":"y","kernel":[1,1],"stride":[50,50],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"w"}]}"#;
        let weight = FloatTensor { shape: vec![1, 1, 1, 1], data: vec![0.75] };
        let floats = Floats::from([("w".into(), weight)]);
        let range = |name: &str| (name.to_string(), (-1.0, 1.0));
        let ranges: Ranges = ["x", "a", "b", "c", "y"].map(range).into();
        let options = graph::Options { rounding: Rounding::Exact, ..graph::Options::default() };
        let source = Source::from_json(source).unwrap();
        let model = graph::lower(source, floats, &ranges.into(), &options).unwrap();
        let plan = crate::Plan::new(model.graph.clone(), Settings::default()).unwrap();
        let sliced: Vec<&str> = plan
            .steps()
            .iter()
            .filter(|step| step.feeds_itself())
            .map(|s| s.name.as_str())
            .collect();
        assert_eq!(sliced, ["conv", "pool"]);
        let values: Vec<f32> =
            (0..1_050_000).map(|i| ((i * 7919) % 2001) as f32 / 1000.0 - 1.0).collect();
        let (answer, server) = run(&model, Reveal::Output, &values);
        assert_eq!(answer.results, clear(&model, &values));
        costs_as_planned(&answer, &server.unwrap(), 1);
    }
}
