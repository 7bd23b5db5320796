//! The ways that each step of a plan can run.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use he::rlwe;
use mpc::Demand;
use mpc::compare::Radix;
use mpc::parallel;
use pricing::{Unit, Work};
use ring::host;

use crate::linear::coefficient::CoefficientLayer;
use crate::linear::trees::TreesLayer;
use crate::plan::Plan;
use crate::plan::options::{Function, Products, StepOptions};
use crate::step::linear::{Exchange, LinearProtocol, Preprocess};
use crate::step::spent::{Spent, parted};
use crate::step::{Action, Step};
use crate::suites;
use crate::suites::likeness::Likeness;
use crate::suites::siblings::Siblings;

/// One way to run a step.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) options: StepOptions,
    pub(super) demand: Demand,
    /// Online.
    pub(super) spent: Spent,
    /// Before, in an exchange with other steps.
    pub(super) before: Spent,
    /// What it takes before where that is behind the first segment: work that the server does
    /// while it waits counts little there.
    pub(super) while_waiting: Spent,
    /// Levels of the keys for unfolding that it asks for.
    pub(super) levels: Levels,
}

/// Levels of keys for unfolding, in the order of [`rlwe::TABLE`].
pub(super) type Levels = [usize; rlwe::TABLE.len()];

/// The levels that a step asks for.
pub(super) fn levels(step: &Step) -> Levels {
    let asked = step.linear().and_then(|layer| layer.keys().unfold);
    rlwe::TABLE.map(|(degree, _)| match asked {
        Some((params, levels)) if params.degree() == degree => levels,
        _ => 0,
    })
}

impl Way {
    pub(super) fn new(options: StepOptions, step: &Step) -> Self {
        let demand = step.mask_demand() + step.demand();
        let (spent, before, levels) = (step.spent(), step.before(), levels(step));
        Self { options, demand, spent, before, while_waiting: while_waiting(step), levels }
    }

    /// Whether it has circuits garbled before.
    pub(super) fn is_garbled(&self) -> bool {
        !self.demand.circuits.is_empty()
    }

    /// Whether it does the same.
    pub(super) fn equals(&self, other: &Self) -> bool {
        (&self.demand, self.spent.cost, self.before.cost)
            == (&other.demand, other.spent.cost, other.before.cost)
    }
}

/// What a second of the server's waits is worth, in seconds of the session: there are not as many as one likes.
const WAITING: f64 = 0.25;

/// What a step takes before its input exists, with little for what the server does while it waits.
fn while_waiting(step: &Step) -> Spent {
    let before = step.before();
    let layer = step.linear().and_then(LinearProtocol::preprocess);
    match layer.map(Preprocess::exchange) {
        Some(Exchange::Encryption) => {
            let (at_once, later) = parted(before.work);
            let all = Unit::ALL.iter().map(|unit| Work::of(*unit, WAITING * later.units(*unit)));
            Spent { work: at_once + all.sum(), ..before }
        }
        _ => before,
    }
}

/// For each step of `plain` the ways that it can run, first the default.
pub(super) fn ways(plain: &Plan) -> Vec<Vec<Way>> {
    let choose = suites::chooses(&plain.graph().suite);
    let siblings = &Siblings::of(plain.graph());
    let likeness = Likeness::new(plain.graph(), siblings);
    // For each step the first one that is like it.
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    let of = |index| likeness.of(index).map_or(index, |alike| *first.entry(alike).or_insert(index));
    let like: Vec<usize> = (0..plain.steps().len()).map(of).collect();
    let apart = plain.steps().iter().enumerate().zip(&like);
    let apart: Vec<_> = apart.filter(|((at, _), like)| at == *like).map(|(some, _)| some).collect();
    let threads = host::threads();
    let found = parallel::map(threads, apart, |(index, step)| {
        (index, ways_of(plain, siblings, (index, step), choose))
    });
    let known: BTreeMap<usize, Vec<Way>> = found.into_iter().collect();
    like.iter().map(|like| known.get(like).cloned().unwrap_or_default()).collect()
}

/// The ways that a step can run, first the default; only that where there is nothing to `choose`.
fn ways_of(
    plain: &Plan,
    siblings: &Siblings,
    (index, step): (usize, &Step),
    choose: bool,
) -> Vec<Way> {
    let mut ways = vec![Way::new(StepOptions::default(), step)];
    if !choose {
        return ways;
    }
    let functions = functions(plain, siblings, (index, step));
    ways.extend(functions.iter().map(|(options, step)| Way::new(*options, step)));
    for (options, product) in products(plain, siblings, index) {
        ways.push(Way::new(options, &product));
        if product.mask_demand() == Demand::default() {
            // What follows the products does not depend on them.
            ways.extend(functions.iter().map(|(function, step)| {
                let spent = product.first().then(step.after());
                let (options, before) = (options.and(*function), product.before());
                let (levels, while_waiting) = (levels(&product), while_waiting(&product));
                Way { options, demand: step.demand(), spent, before, while_waiting, levels }
            }));
        }
    }
    ways
}

/// Runs for which layers of a model that keeps states are prepared together, where they are: answers have
/// fewer bytes the more inputs they are for, about as the root of their number, and are held until they are used.
const TOGETHER: NonZeroU32 = NonZeroU32::new(32).unwrap();

/// Ways to multiply, of a linear step.
fn products(plain: &Plan, siblings: &Siblings, index: usize) -> Vec<(StepOptions, Step)> {
    let (graph, settings) = (plain.graph(), plain.settings());
    let packings =
        |runs| suites::packings(graph, settings, (index, runs)).unwrap_or_default().into_iter();
    let packing = |how| StepOptions { products: Some(how), ..StepOptions::default() };
    let mut all: Vec<_> = packings(1).map(|(how, step)| (packing(how), step)).collect();
    let early = settings.store() == 0;
    let alone = settings.batch() == 1;
    let several = Some(TOGETHER).filter(|_| !graph.states.is_empty() && alone);
    for runs in [None, several].into_iter().take(1 + usize::from(several.is_some())) {
        if !early {
            break;
        }
        let packed = packings(runs.map_or(1, |runs| runs.get() as usize));
        let prepares = |step: &Step| step.linear().and_then(LinearProtocol::preprocess).is_some();
        all.extend(packed.filter(|(_, step)| prepares(step)).map(|(how, step)| {
            // The first is the default.
            let default = how == Products::Packing(1);
            let plain = if default { StepOptions::default() } else { packing(how) };
            (StepOptions { preprocessed: true, runs, ..plain }, early_step(step))
        }));
    }
    let by_ot = StepOptions { products: Some(Products::Ot), ..StepOptions::default() };
    if early && !all.is_empty() {
        let built = suites::step((graph, siblings), settings, index, by_ot).ok();
        all.extend(built.map(|step| (by_ot, step)));
    }
    all
}

/// The step, preprocessed in every session if it is a layer packed into coefficients.
fn early_step(mut step: Step) -> Step {
    if let Action::Linear(layer) = &mut step.action {
        if let Some(layer) = layer.downcast_mut::<CoefficientLayer>() {
            layer.preprocessed = true;
        } else if let Some(trees) = layer.downcast_mut::<TreesLayer>() {
            trees.set_preprocessed(true);
        }
    }
    step
}

/// Ways to compute what a step has beside products.
fn functions(
    plain: &Plan,
    siblings: &Siblings,
    (index, step): (usize, &Step),
) -> Vec<(StepOptions, Step)> {
    if !step.chooses() {
        return Vec::new();
    }
    let radices = || (1..=8).filter_map(|bits| Radix::of_bits(bits).ok());
    let digits = radices().chain(Radix::without_width()).flat_map(|radix| {
        let all = [Function::Digits, Function::Rows, Function::Stages, Function::Tables];
        all.map(|function| function(radix))
    });
    let digits = digits.map(StepOptions::function);
    let others = [Function::OnMask, Function::Circuits, Function::Table].map(StepOptions::function);
    let (graph, settings) = (plain.graph(), plain.settings());
    let built =
        |options| Some((options, suites::step((graph, siblings), settings, index, options).ok()?));
    let all = digits.chain(others).chain([StepOptions::default()]);
    let turned = all.clone().map(|options| StepOptions { turns: true, ..options });
    let chained = [Function::Digits, Function::Rows].map(|function| function(Radix::Chain));
    let chained = chained.into_iter().map(StepOptions::function);
    let shallow = chained.map(|options| StepOptions { turns: true, shallow: true, ..options });
    let near = shallow.clone().map(|options| StepOptions { near: true, ..options });
    let all = all.filter(|options| !options.is_none()).chain(turned).chain(shallow).chain(near);
    all.filter_map(built).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use graph::{FloatTensor, Floats, Model, Ranges, Source};

    use super::*;
    use crate::plan::Settings;

    /// Three layers of the same weights and ranges with ReLUs between them, and a last one.
    fn repeated() -> Model {
        let layer = |from: &str, to: &str| {
            format!(
                r#"{{"name":"fc-{to}","op":"Gemm","inputs":["{from}"],"output":"{to}","weight":"w","bias":"b"}}"#
            )
        };
        let relu = |from: &str, to: &str| {
            format!(
                r#"{{"name":"relu-{to}","op":"Relu","inputs":["{from}"],"output":"{to}","maximum":null}}"#
            )
        };
        let nodes = [
            layer("x", "a"),
            relu("a", "b"),
            layer("b", "c"),
            relu("c", "d"),
            layer("d", "e"),
            relu("e", "f"),
            layer("f", "y"),
        ];
        let source = format!(
            r#"{{"name":"repeated","input":{{"name":"x","shape":[8]}},"output":"y","nodes":[{}]}}"#,
            nodes.join(",")
        );
        let values = |count: usize| (0..count).map(|at| ((at % 7) as f32 - 3.0) / 8.0).collect();
        let floats = Floats::from([
            ("w".into(), FloatTensor { shape: vec![8, 8], data: values(64) }),
            ("b".into(), FloatTensor { shape: vec![8], data: values(8) }),
        ]);
        let range =
            |names: &'static [&str], low| names.iter().map(move |n| ((*n).into(), (low, 3.0)));
        let ranges: Ranges =
            range(&["a", "c", "e", "x", "y"], -3.0).chain(range(&["b", "d", "f"], 0.0)).collect();
        let source = Source::from_json(&source).unwrap();
        graph::lower(source, floats, &ranges.into(), &graph::Options::default()).unwrap()
    }

    #[test]
    fn steps_that_are_alike_have_the_ways_of_one() {
        let plain = Plan::new(repeated().graph, Settings::default()).unwrap();
        let siblings = Siblings::of(plain.graph());
        let likeness = Likeness::new(plain.graph(), &siblings);
        let texts: Vec<String> =
            (0..plain.steps().len()).filter_map(|at| likeness.of(at)).collect();
        assert!(texts.iter().collect::<BTreeSet<_>>().len() < texts.len());
        for (index, (step, ways)) in plain.steps().iter().zip(ways(&plain)).enumerate() {
            let own = ways_of(&plain, &siblings, (index, step), true);
            assert_eq!(format!("{ways:?}"), format!("{own:?}"), "{}", step.name);
        }
    }
}
