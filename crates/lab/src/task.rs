//! An operation as a plan, with its random input and its result in the clear.

use graph::{Format, Graph, Linear, Model, Tensor};
use mpc::compare::Radix;
use mpc::lookup::PublicTable;
use mpc::{Protocol, Share, softmax};
use ot::Source;
use ring::word::{mask, signed};
use ring::{Prg, Seed};
use runtime::linear::coefficient::CoefficientLayer;
use runtime::plan::{Plan, Settings};
use runtime::step::{Action, Step};
use sha2::{Digest, Sha256};
use wire::{Error, Result, Role};

use crate::linear::shape;
use crate::operation::Operation;
use crate::values::{Input, Output};
use crate::{circuits, linear, single, tiles, transformer};

/// The tensor that a single step writes.
const RESULT: usize = usize::MAX;

/// Most values of one bench.
const MOST_VALUES: usize = 1 << 30;

/// An operation with its plan, its random input and what its result means.
pub(crate) struct Task {
    pub(crate) operation: Operation,
    pub(crate) plan: Plan,
    pub(crate) model: Option<Model>,
    pub(crate) output: Output,
    pub(crate) digest: [u8; 32],
    input: Input,
}

impl Task {
    pub(crate) fn new(operation: Operation, settings: Settings) -> Result<Self> {
        let name = operation.name();
        let ot = source(&operation).unwrap_or(settings.ot);
        let settings = Settings { ot, batch: None, ..settings };
        let json = serde_json::to_string(&(&operation, settings)).unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(json).into();
        let of = |input: Input, output, action: Option<Action>| {
            let reads = (0..1 + usize::from(input.second.is_some())).collect();
            let step =
                |action| Step { name: name.into(), node: None, reads, writes: RESULT, action };
            let steps = action.map(step).into_iter().collect();
            let unified = matches!(operation, Operation::Comet { .. });
            let suite = if unified { "comet" } else { "auto" };
            let plan = Plan::of_steps(empty(name, suite, &input), steps, settings);
            Self { operation: operation.clone(), plan, model: None, output, digest, input }
        };
        check_sizes(&operation)?;
        Ok(match operation {
            Operation::Ot { .. } => of(Input::plain(0, 1), Output::signed(1), None),
            Operation::Conv { .. } | Operation::Matmul { .. } => {
                return Self::linear(operation, settings, digest);
            }
            _ => {
                let (input, output, action) = single::plan(&operation, &digest)?;
                of(input, output, Some(action))
            }
        })
    }

    fn linear(operation: Operation, settings: Settings, digest: [u8; 32]) -> Result<Self> {
        let name = operation.name();
        let mut seed = Seed([0; 16]);
        seed.0.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        let shape = shape(&operation)?;
        let folded = shape.folded;
        if folded.is_some() && shape.suite != "auto" {
            return Err(Error::misuse("only suite auto has folded inputs"));
        }
        if runtime::ot_products(&shape.suite) {
            let (model, plan, input, output) = tiles::plan(&operation, &seed, settings)?;
            return Ok(Self { operation, plan, model: Some(model), output, digest, input });
        }
        let model = linear::model(name, shape, &seed)?;
        let graph = model.graph.clone();
        let [input, output] = [graph.input, graph.output].map(|i| graph.tensors.get(i));
        let (Some(input), Some(output)) = (input, output) else {
            return Err(Error::misuse("a layer without tensors"));
        };
        let (bits, count) = (input.format.bits, input.len());
        let input = Input { width: graph.activation_bits, ..Input::plain(count, bits) };
        let outputs = output.len();
        let output = Output::signed(output.format.bits);
        if let Some(steps) = runtime::parts::slot_layer(&graph) {
            let plan = Plan::of_steps(graph, steps?, settings);
            return Ok(Self { operation, plan, model: Some(model), output, digest, input });
        }
        let Some(layer) = graph.nodes.first().and_then(|node| node.op.get::<Linear>()) else {
            return Err(Error::misuse("a layer that is not linear"));
        };
        let radix = Radix::fastest(outputs, layer.shift);
        let layer = match folded {
            Some(place) => CoefficientLayer::folded(layer, output.bits, radix, place)?,
            None => CoefficientLayer::new(layer, output.bits, radix, 1)?,
        };
        let action = Action::linear(layer);
        let steps = vec![Step::of_node(&graph, 0, action)];
        let plan = Plan::of_steps(graph, steps, settings);
        Ok(Self { operation, plan, model: Some(model), output, digest, input })
    }

    fn table(&self) -> Option<&[u64]> {
        self.protocol()?.downcast::<PublicTable>().map(PublicTable::values)
    }

    /// The protocol on shares that is measured, if it is one.
    fn protocol(&self) -> Option<&dyn Protocol> {
        self.plan.steps().first()?.composed()?.sliced.kind()
    }

    /// The result of a transformer's function, and its distance from the real one.
    fn transformed(&self, values: &[i64]) -> Result<(Vec<i64>, f64)> {
        let clear = self.protocol().and_then(|protocol| transformer::clear(protocol, values));
        clear.ok_or_else(|| Error::misuse("a function that is not a transformer's"))
    }

    /// How far exact results are from the real function in last places, where it is not an
    /// integer's.
    pub(crate) fn real_error(&self, values: &[i64]) -> Option<f64> {
        self.transformed(values).ok().map(|(_, error)| error)
    }

    /// OTs that are made for their own sake.
    pub(crate) fn cots(&self) -> Option<usize> {
        match self.operation {
            Operation::Ot { count, .. } => Some(count),
            _ => None,
        }
    }

    /// The values of a session and one party's shares of them, one for each factor.
    pub(crate) fn draw(&self, seed: &Seed, role: Role) -> (Vec<i64>, Vec<Share>) {
        let Input { count, bits, width, low, modulus, second } = self.input;
        let mut prg = Prg::new(seed, 0);
        let mut draw = |bits, width| {
            let words = prg.uniform(count, width);
            let values: Vec<i64> = words.iter().map(|word| signed(*word, width).max(low)).collect();
            let mut client = prg.uniform(count, bits);
            if let Some(modulus) = modulus {
                client.iter_mut().for_each(|word| *word = modulus.reduce(*word));
            }
            let rest = |(v, c): (&i64, u64)| match modulus {
                Some(modulus) => modulus.subtract(modulus.of_signed(*v), c),
                None => (*v as u64).wrapping_sub(c),
            };
            let words = match role {
                Role::Client => client,
                Role::Server => values.iter().zip(client).map(rest).collect(),
            };
            (values, Share::new(words, bits))
        };
        let first = draw(bits, width);
        let drawn = std::iter::once(first).chain(second.map(|bits| draw(bits, bits)));
        let (values, shares): (Vec<_>, Vec<_>) = drawn.unzip();
        (values.concat(), shares)
    }

    /// The result in the clear.
    pub(crate) fn clear(&self, values: &[i64]) -> Result<Vec<i64>> {
        let each = |f: &dyn Fn(i64) -> i64| values.iter().map(|v| f(*v)).collect();
        Ok(match &self.operation {
            Operation::Relu { saturate, .. } => {
                let cap = saturate.map_or(i64::MAX, |a| (1i64 << a) - 1);
                each(&|v| v.clamp(0, cap))
            }
            Operation::MaxPool { window, .. } => {
                values.chunks_exact(*window).filter_map(|w| w.iter().max().copied()).collect()
            }
            Operation::Circuit { window, relu, .. } => {
                let largest = |w: &[i64]| w.iter().max().copied();
                let maxima = values.chunks_exact(*window).filter_map(largest);
                maxima.map(|v| if *relu { v.max(0) } else { v }).collect()
            }
            Operation::Probability { count, bits, digits } => {
                let plan = circuits::probability(*count, *bits, *digits)?;
                let (label, denominator) = softmax::clear(&plan, values)?;
                vec![label as i64, denominator as i64]
            }
            Operation::Argmax { .. } => vec![graph::argmax(values) as i64],
            Operation::Truncate { drop, .. } => {
                each(&|v| self.output.read((v >> drop) as u64 & mask(self.output.bits)))
            }
            Operation::Extend { .. } => each(&|v| v),
            Operation::Compare { .. } => each(&|v| i64::from(v >= 0)),
            Operation::Lookup { bits, .. } => {
                let table = self.table().ok_or_else(|| Error::misuse("a lookup without table"))?;
                let entry = |v: i64| table.get((v as u64 & mask(*bits)) as usize).copied();
                each(&|v| self.output.read(entry(v).unwrap_or_default()))
            }
            Operation::Multiply { count, .. } => {
                let pairs = values.iter().zip(values.iter().skip(*count));
                let products = pairs.map(|(x, y)| x.wrapping_mul(*y) as u64);
                products.map(|product| self.output.read(product & mask(self.output.bits))).collect()
            }
            Operation::Gelu { .. }
            | Operation::Softmax { .. }
            | Operation::LayerNorm { .. }
            | Operation::Comet { .. } => {
                let (clear, _) = self.transformed(values)?;
                clear
            }
            Operation::Ot { .. } => Vec::new(),
            Operation::Conv { .. } | Operation::Matmul { .. } => {
                let model = self.model.as_ref();
                let model = model.ok_or_else(|| Error::misuse("a layer without its model"))?;
                let model = linear::exact(model);
                graph::interpret(&model, values).map_err(|e| Error::misuse(e.to_string()))?
            }
        })
    }
}

/// The source that an operation is about.
fn source(operation: &Operation) -> Option<Source> {
    match operation {
        Operation::Ot { kind, .. } => Some(kind.source()),
        _ => None,
    }
}

fn check_sizes(operation: &Operation) -> Result<()> {
    let (values, bits) = match *operation {
        Operation::Relu { count, bits, .. }
        | Operation::Argmax { count, bits, .. }
        | Operation::Probability { count, bits, .. }
        | Operation::Truncate { count, bits, .. }
        | Operation::Compare { count, bits, .. }
        | Operation::Lookup { count, bits, .. }
        | Operation::Multiply { count, bits, .. }
        | Operation::Extend { count, bits, .. } => (Some(count), bits),
        Operation::Circuit { count, modulus, .. } => {
            (Some(count), u64::BITS - modulus.leading_zeros())
        }
        Operation::MaxPool { count, bits, window, .. } => (count.checked_mul(window), bits),
        Operation::Gelu { rows, cols, bits, .. }
        | Operation::Softmax { rows, cols, bits, .. }
        | Operation::LayerNorm { rows, cols, bits, .. }
        | Operation::Comet { rows, cols, bits, .. } => (rows.checked_mul(cols), bits),
        Operation::Ot { count, .. } => (Some(count), 2),
        Operation::Conv { .. } | Operation::Matmul { .. } => return Ok(()),
    };
    if !values.is_some_and(|n| (1..=MOST_VALUES).contains(&n)) || !(2..=63).contains(&bits) {
        return Err(Error::misuse("a bench takes 1 to 2^30 values of 2 to 63 bits"));
    }
    Ok(())
}

/// A graph that only names the input.
fn empty(name: &str, suite: &str, input: &Input) -> Graph {
    let tensor = Tensor {
        name: "input".into(),
        shape: vec![input.count],
        format: Format { bits: input.bits, scale: 1.0, signed: true },
    };
    Graph {
        version: graph::VERSION,
        name: name.into(),
        suite: suite.into(),
        nonlinear: graph::Nonlinear::Ot,
        activation_bits: input.width,
        input_range: [0, 1],
        input_rows: vec![],
        exact: None,
        states: vec![],
        inputs: vec![],
        outputs: vec![],
        tensors: vec![tensor],
        nodes: Vec::new(),
        input: 0,
        output: 0,
        labels: Vec::new(),
        link: None,
    }
}
