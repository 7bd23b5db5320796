//! Models before anybody connects.

use graph::ops::{Linear, Sum, Winograd};
use graph::source::ops::{Gelu, Softmax};
use graph::{Calibration, Floats, Graph, Model, Options, Part, Rounding, Source};
use std::borrow::Cow;
use std::collections::BTreeMap;

use runtime::planner::{self, Alternative, Planning, Rates, Widths};
use runtime::{Inputs, Plan, Report, Reveal, Settings, hexadecimal};
use serde::{Deserialize, Serialize};
use wire::{Error, Result};

use crate::planning::{conditions, planning};
use crate::refused::refused;
use crate::revealed::revealing;
use crate::session::link;

/// A compiled model, for people and programs.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// Name of the imported network.
    pub name: String,
    /// The suite it was compiled for.
    pub suite: String,
    /// `client` where the suite is secure against a client that sends anything, as in reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_against: Option<&'static str>,
    /// SHA-256 of the public part without share widths, in hexadecimal.
    pub digest: String,
    /// What goes in.
    pub input: InputDescription,
    /// What comes out.
    pub output: OutputDescription,
    /// Names of the tensors that stay shared from one input of a session to the next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
    /// Names of the outputs, or empty.
    pub labels: Vec<String>,
    /// What clients may make of the outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<graph::Link>,
    /// A row per node.
    pub layers: Vec<LayerDescription>,
}

/// What goes in.
#[derive(Clone, Debug, Serialize)]
pub struct InputDescription {
    /// Shape of one input; several inputs lie flattened one after another.
    pub shape: Vec<usize>,
    /// The inputs that it is made of, where they are several or have another shape.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Smallest and largest integer after quantisation; beyond it inputs saturate.
    pub range: [i64; 2],
    /// Real value of one unit.
    pub scale: f64,
    /// How numbers become integers.
    pub encoding: graph::Encoding,
}

/// What comes out.
#[derive(Clone, Debug, Serialize)]
pub struct OutputDescription {
    /// Shape of one output; several results lie flattened one after another.
    pub shape: Vec<usize>,
    /// The results that it is made of, where they are several or have another shape.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Real value of one unit.
    pub scale: f64,
}

/// One node.
#[derive(Clone, Debug, Serialize)]
pub struct LayerDescription {
    /// The node's name.
    pub name: String,
    /// What it computes.
    pub operator: &'static str,
    /// Shape of its (first) input.
    pub input_shape: Vec<usize>,
    /// Shape of its output.
    pub output_shape: Vec<usize>,
    /// Width of the output's shares.
    pub bits: u32,
    /// Width of the accumulator, of linear nodes.
    pub accumulator_bits: Option<u32>,
    /// Bits dropped after it.
    pub shift: Option<u32>,
    /// How they are dropped.
    pub rounding: Option<graph::Rounding>,
}

/// Compiles an imported network (see [`graph::Source`] for the JSON). What
/// `calibration` holds is in model units, by tensor name.
///
/// # Errors
/// [`Error::Unsupported`] naming the first node that this version cannot run,
/// [`Error::Misuse`] for anything that does not fit together.
pub fn compile(
    source_json: &str,
    floats: Floats,
    calibration: &Calibration,
    options: &Options,
) -> Result<Model> {
    runtime::check_suite(&options.suite)?;
    let source = Source::from_json(source_json).map_err(refused)?;
    let mut options = options.clone();
    if runtime::unifies(&options.suite) {
        unified(&source)?;
        options.newton = true;
    }
    if runtime::rounds_exactly(&options.suite) {
        options.rounding = Rounding::Exact;
    }
    options.exact = runtime::never_rescales(&options.suite);
    options.ot_products = runtime::ot_products(&options.suite);
    let mut model = graph::lower(source, floats, calibration, &options).map_err(refused)?;
    if runtime::hides_filters(&options.suite) {
        graph::canonical_filters(&mut model);
        graph::verify_model(&model).map_err(refused)?;
    }
    Plan::new(model.graph.clone(), Settings::default())?;
    Ok(model)
}

/// Refuses functions that a suite of one inverse square root does not have.
fn unified(source: &Source) -> Result<()> {
    for node in &source.nodes {
        let what = if node.op.is::<Gelu>() {
            "a GELU"
        } else if node.op.is::<Softmax>() {
            "a softmax of exponentials"
        } else {
            continue;
        };
        let instead = format!(
            "is {what}, which suite `comet` does not have: finetune the model with smooth maxima \
             in its place (`tacit train glue`), or compile for suite auto"
        );
        return Err(Error::Unsupported { node: node.name.clone(), instead });
    }
    Ok(())
}

/// Describes `model`.
pub fn describe(model: &Model) -> Description {
    let graph = &model.graph;
    let tensor = |index: usize| graph.tensors.get(index);
    let name = |index: usize| tensor(index).map(|t| t.name.clone()).unwrap_or_default();
    let scale = |index: usize| tensor(index).map_or(1.0, |t| t.format.scale);
    let digest = hexadecimal(&graph::digest(graph));
    Description {
        name: graph.name.clone(),
        suite: graph.suite.clone(),
        secure_against: runtime::secure_against_client(&graph.suite).then_some("client"),
        digest,
        input: InputDescription {
            shape: graph.input_shape().to_vec(),
            parts: graph.inputs.clone(),
            range: graph.input_range,
            scale: scale(graph.input),
            encoding: graph.encoding(),
        },
        output: OutputDescription {
            shape: graph.output_shape().to_vec(),
            parts: graph.outputs.clone(),
            scale: scale(graph.output),
        },
        states: graph.states.iter().map(|state| name(state.before)).collect(),
        labels: graph.labels.clone(),
        link: graph.link,
        layers: layers(graph),
    }
}

fn layers(graph: &Graph) -> Vec<LayerDescription> {
    let rows = graph.nodes.iter().map(|node| {
        let output = graph.output_of(node);
        let (accumulator_bits, shift, rounding) = if let Some(l) = node.op.get::<Linear>() {
            (Some(l.accumulator_bits), Some(l.shift), Some(l.rounding))
        } else if let Some(l) = node.op.get::<Winograd>() {
            (Some(l.accumulator_bits), Some(l.shift), Some(l.rounding))
        } else if let Some(Sum { accumulator_bits, shift, .. }) = node.op.get() {
            (Some(*accumulator_bits), Some(*shift), Some(graph::Rounding::Exact))
        } else {
            (None, None, None)
        };
        LayerDescription {
            name: node.name.clone(),
            operator: node.op.title(),
            input_shape: graph.input_of(node, 0).shape.clone(),
            output_shape: output.shape.clone(),
            bits: output.format.bits,
            accumulator_bits,
            shift,
            rounding,
        }
    });
    rows.collect()
}

/// Runs the model's integers in the clear: the oracle that private runs equal.
/// `values` holds one input of the model's shape, or several with a leading axis,
/// in model units. With a `seed` stochastic rounding is drawn from it as the protocols round;
/// without one every rescale goes to the nearest integer. Inputs of a model with states are those
/// of one session, in order.
///
/// # Errors
/// [`Error::Misuse`] when the inputs do not fit or are not finite.
pub fn simulate(
    model: &Model,
    values: &[f32],
    shape: &[usize],
    seed: Option<u64>,
) -> Result<Vec<Vec<i64>>> {
    let inputs = runtime::quantize(&model.graph, values, shape)?;
    let outputs = match seed {
        Some(seed) => graph::interpret_stochastic(model, &inputs, seed),
        None => graph::interpret_batch(model, &inputs),
    };
    outputs.map_err(refused)
}

/// How to plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanOptions {
    /// Inputs of the session.
    pub inputs: usize,
    /// How many of them come first and are only for what the model keeps, where a plan has such runs.
    pub remembered: usize,
    /// Whether the others come in passes too, as they do with drafts of what a language model writes.
    pub in_passes: bool,
    /// How many inputs the session is opened for, where these are its first ones.
    pub opened: usize,
    /// Inputs of further sessions by the same plan.
    pub also: Vec<Inputs>,
    /// What the server offers.
    pub settings: Settings,
    /// Edges between buckets, as for `serve`.
    pub edges: Vec<f64>,
    /// The link, as for `serve`.
    pub network: Option<String>,
    /// As for `serve`.
    pub protocols: String,
    /// As for `serve`.
    pub rates: Option<Rates>,
    /// Whether other protocols are told, too.
    pub explain: bool,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            inputs: 1,
            remembered: 0,
            in_passes: false,
            opened: 0,
            also: Vec::new(),
            settings: Settings::default(),
            edges: Vec::new(),
            network: None,
            protocols: "auto".into(),
            rates: None,
            explain: false,
        }
    }
}

/// A plan and what it costs.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// Bytes and rounds, exactly; seconds, about.
    #[serde(flatten)]
    pub report: Report,
    /// What further sessions cost, if they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Report>,
    /// What was chosen for single steps, by name of the layer.
    pub choices: BTreeMap<String, String>,
    /// Share widths beside those that the model was compiled with.
    pub widths: Widths,
    /// Seconds with each source of correlations, if they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<(String, f64)>,
    /// By name of the layer the ways to run it, if they were asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub alternatives: BTreeMap<String, Vec<Alternative>>,
}

/// What a session costs, to the byte and the round, and about the seconds.
///
/// # Errors
/// [`Error::Unsupported`] for a node without a protocol.
pub fn plan(model: &Model, options: &PlanOptions) -> Result<Planned> {
    let link = link(options.network.as_deref())?;
    let conditions = conditions(link, options.rates);
    let settings = options.settings.planned_for(link);
    let model = shown(model, options)?;
    let model = model.as_ref();
    let planning = planning(&options.protocols, options.network.as_deref(), options.rates)?;
    let (plan, sources, alternatives) = match (&planning, options.explain) {
        (Planning::Best(_), _) | (Planning::Plain, true) => {
            let (found, plan) = match planning {
                Planning::Best(_) => (planner::best_widths(model, settings, &conditions)?, None),
                _ => {
                    let found = planner::best(&model.graph, settings, &conditions)?;
                    (found, Some(planning.plan(model, settings)?))
                }
            };
            (plan.unwrap_or(found.plan), found.sources, found.alternatives)
        }
        _ => (planning.plan(model, settings)?, Vec::new(), BTreeMap::new()),
    };
    let name = |step: usize| plan.steps().get(step).map(|s| s.name.clone()).unwrap_or_default();
    let chosen = (0..plan.steps().len())
        .filter(|step| !plan.options().of(*step).is_none())
        .map(|step| (name(step), plan.options().of(step).to_string()));
    let told = alternatives.into_iter().map(|(step, ways)| (name(step), ways));
    let alternatives = if options.explain { told.collect() } else { BTreeMap::new() };
    let foreseen = |inputs| Report::predicted_under(&plan, inputs, &conditions);
    let PlanOptions { inputs: all, remembered, in_passes, opened, .. } = *options;
    Ok(Planned {
        choices: chosen.collect(),
        widths: Widths::of(plan.graph(), &model.graph),
        sources: if options.explain { sources } else { Vec::new() },
        alternatives,
        report: foreseen(Inputs { all, remembered, in_passes, opened }),
        also: options.also.iter().copied().map(foreseen).collect(),
    })
}

/// The model with the edges of its buckets, where these are revealed.
fn shown<'a>(model: &'a Model, options: &PlanOptions) -> Result<Cow<'a, Model>> {
    Ok(match options.settings.reveal {
        Reveal::Bucket => Cow::Owned(revealing(model.clone(), Reveal::Bucket, &options.edges)?),
        _ => Cow::Borrowed(model),
    })
}

/// How many inputs a run should have in a session of `options.inputs`, where nobody says.
///
/// # Errors
/// [`Error::Misuse`] for an unknown network and for edges that the model cannot have.
pub fn suited_batch(model: &Model, options: &PlanOptions) -> Result<usize> {
    let link = link(options.network.as_deref())?;
    let conditions = conditions(link, options.rates);
    let settings = options.settings.planned_for(link);
    let model = shown(model, options)?;
    Ok(planner::suited_batch(&model.graph, settings, &conditions, options.inputs))
}
