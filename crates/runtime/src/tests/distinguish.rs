//! Two attempts to learn what ENGINE section 7 says cannot be learned: which of two
//! models with equal outputs served a client, and which of two inputs a server
//! answered. The distinguisher gets a party's whole view of many sessions: lengths,
//! order and bytes of what it received, and the shares it was left with.

use std::num::NonZeroU32;
use std::ops::Range;

use graph::{FloatTensor, Floats, Model, Ranges, Rounding, Source};
use mpc::Share;
use ring::Random;
use ring::word::mask;
use wire::testing::run_pair;
use wire::{Channel, Result, Role};

use crate::keys::lola::Cache;
use crate::plan::kind::Kind;
use crate::plan::{Plan, Reveal, Settings};
use crate::preprocess::layers::Ahead;
use crate::run::{self, Before};
use crate::session::encoded::EncodedModel;
use crate::session::handshake;
use crate::session::opening::Asking;
use crate::step::context::{Endpoint, Party};
use crate::step::correlations::CorrelationSource;
use crate::step::keys::{ClientKeys, ServerKeys};
use crate::step::memory::Memory;
use crate::tests::{SIDE, network};

/// Sessions on each side of a comparison; enough that a bit which is always one on
/// one side and never on the other is [`FAR`] out.
pub(super) const SESSIONS: usize = 40;
/// Standard deviations that count as a difference: uniform bits get there in a
/// hundred million looks with probability below 2^-16.
const FAR: f64 = 7.0;

/// What one party saw of a session.
#[derive(Clone)]
pub(super) struct View {
    frames: Vec<Vec<u8>>,
    shares: Vec<(u32, Vec<u64>)>,
    opened: Vec<u64>,
}

/// Sessions on one quantised input, numbered by `seeds`: the views of `party`.
pub(super) fn views(
    model: &Model,
    reveal: Reveal,
    input: &[i64],
    seeds: Range<usize>,
    party: Role,
) -> Vec<View> {
    views_of(model, reveal, &[(Kind::Whole, input)], seeds, party)
}

/// Sessions of several runs, each of a kind and on a quantised input, or on those of a pass.
pub(super) fn views_of(
    model: &Model,
    reveal: Reveal,
    runs: &[(Kind, &[i64])],
    seeds: Range<usize>,
    party: Role,
) -> Vec<View> {
    let of_one = model.graph.tensors[model.graph.input].len();
    let pass = runs.iter().find(|(kind, _)| kind.is_pass()).map(|(_, all)| all.len() / of_one);
    let pass = pass.and_then(|inputs| NonZeroU32::new(inputs as u32));
    let settings = Settings { reveal, pass, ot: ot::Source::SoftSpoken4, ..Settings::default() };
    let plan = Plan::new(model.graph.clone(), settings).unwrap();
    let prepared = EncodedModel::new(&plan, model.clone()).unwrap();
    let view = |seed: usize| {
        let rng = |party: u64| Random::seeded(2 * seed as u64 + party);
        let (ours, theirs) = run_pair(
            |channel| client(channel, runs, 1, &mut rng(0)).unwrap(),
            |channel| server(channel, (&plan, &prepared), runs, 1, &mut rng(1)).unwrap(),
        );
        let (opened, shares) = ours.value;
        match party {
            Role::Client => View { frames: theirs.frames, shares, opened },
            Role::Server => View { frames: ours.frames, shares: theirs.value, opened: Vec::new() },
        }
    };
    seeds.map(view).collect()
}

type Shares = Vec<(u32, Vec<u64>)>;

fn seen(share: &Share) -> (u32, Vec<u64>) {
    (share.bits(), share.words().to_vec())
}

fn client(
    channel: &mut Channel,
    runs: &[(Kind, &[i64])],
    threads: usize,
    rng: &mut Random,
) -> Result<(Vec<u64>, Shares)> {
    let (plan, _, agreed, _) = handshake::client(channel, rng, Asking::default(), |_| Ok(1))?;
    let keys = ClientKeys::setup(channel, &plan, &agreed, None, rng)?;
    let source =
        &mut CorrelationSource::setup(channel, rng, agreed.session, plan.settings().sourcing())?;
    let memory = &mut Memory::default();
    let (mut shares, mut states) = (Shares::new(), run::first_states(&plan)?);
    let mut opened = Vec::new();
    for (kind, input) in runs {
        let party = Party::Client { keys: &keys, input, added: &[], threads };
        let end = &mut Endpoint { channel, party, source, rng, memory };
        let mut watch = |share: &Share| shares.push(seen(share));
        let before = Before::Ahead(Ahead::default());
        let of_kind = (plan.of(*kind)?, *kind);
        opened.extend(run::run(end, of_kind, &mut states, before, &mut watch)?);
        if !kind.is_for_states() {
            // The last share is what was opened.
            shares.pop();
        }
    }
    Ok((opened, shares))
}

fn server(
    channel: &mut Channel,
    (plan, prepared): (&Plan, &EncodedModel),
    runs: &[(Kind, &[i64])],
    threads: usize,
    rng: &mut Random,
) -> Result<Shares> {
    let (_, agreed) = handshake::server(channel, rng, false, |_| Ok(plan))?;
    let keys = ServerKeys::setup(channel, plan, &agreed, &Cache::default())?;
    let source =
        &mut CorrelationSource::setup(channel, rng, agreed.session, plan.settings().sourcing())?;
    let memory = &mut Memory::default();
    let (mut shares, mut states) = (Shares::new(), run::first_states(plan)?);
    for (kind, _) in runs {
        let party = Party::Server { keys: &keys, weights: prepared.weights(), threads };
        let party = if kind.is_pass() { party.in_pass()? } else { party };
        let end = &mut Endpoint { channel, party, source, rng, memory };
        let mut watch = |share: &Share| shares.push(seen(share));
        let before = Before::Ahead(Ahead::default());
        run::run(end, (plan.of(*kind)?, *kind), &mut states, before, &mut watch)?;
        if !kind.is_for_states() {
            shares.pop();
        }
    }
    Ok(shares)
}

/// Number, order, tags and lengths of messages, and widths of shares.
fn form(view: &View) -> (Vec<Vec<u8>>, Vec<(u32, usize)>) {
    let headers = view.frames.iter().map(|frame| frame[..5].to_vec()).collect();
    (headers, view.shares.iter().map(|(bits, words)| (*bits, words.len())).collect())
}

/// Largest difference between two samples of equal size, in standard deviations, over
/// all positions: how often each bit is one.
fn largest_bias(left: &[Vec<u64>], right: &[Vec<u64>]) -> f64 {
    let ones = |sample: &[Vec<u64>], at: usize| {
        let mut ones = [0u32; 64];
        for words in sample {
            ones.iter_mut().zip(0..).for_each(|(ones, bit)| *ones += (words[at] >> bit) as u32 & 1);
        }
        ones
    };
    let at = |at| {
        let pairs = ones(left, at).into_iter().zip(ones(right, at));
        let far = pairs.map(|(a, b)| deviations(a.into(), b.into(), left.len() as f64));
        far.fold(0.0, f64::max)
    };
    (0..left[0].len()).map(at).fold(0.0, f64::max)
}

/// How far two counts out of `size` are apart, in standard deviations of one source.
fn deviations(a: f64, b: f64, size: f64) -> f64 {
    let rate = (a + b) / (2.0 * size);
    let deviation = (2.0 * size * rate * (1.0 - rate)).sqrt();
    if deviation == 0.0 { 0.0 } else { (a - b).abs() / deviation }
}

/// Largest difference between two samples in how often each byte value occurs.
fn largest_skew(left: &[Vec<u64>], right: &[Vec<u64>]) -> f64 {
    let histogram = |sample: &[Vec<u64>]| {
        let mut counts = [0f64; 256];
        let bytes = sample.iter().flatten().flat_map(|word| word.to_le_bytes());
        bytes.for_each(|byte| counts[usize::from(byte)] += 1.0);
        counts
    };
    let size = (8 * left.iter().map(Vec::len).sum::<usize>()) as f64;
    let pairs = histogram(left).into_iter().zip(histogram(right));
    pairs.map(|(a, b)| deviations(a, b, size)).fold(0.0, f64::max)
}

/// The mean of all words, as far apart as it is between two samples of uniform ones.
fn mean_gap(left: &[Vec<u64>], right: &[Vec<u64>], bits: u32) -> f64 {
    let scale = mask(bits) as f64 + 1.0;
    let sum = |sample: &[Vec<u64>]| -> f64 {
        sample.iter().flatten().map(|word| *word as f64 / scale).sum()
    };
    let size = left.iter().map(Vec::len).sum::<usize>() as f64;
    (sum(left) - sum(right)).abs() / (2.0 * size / 12.0).sqrt()
}

fn frame_words(views: &[View], index: usize) -> Vec<Vec<u64>> {
    let words = |frame: &[u8]| {
        let padded = frame.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        padded.collect()
    };
    views.iter().map(|view| words(&view.frames[index])).collect()
}

/// The first statistic that tells `left` from `right`, and how far apart they are.
pub(super) fn told_apart(left: &[View], right: &[View]) -> Option<String> {
    let wanted = form(&left[0]);
    if left.iter().chain(right).any(|view| form(view) != wanted) {
        return Some("lengths, order or tags differ".into());
    }
    if left.iter().chain(right).any(|view| view.opened != left[0].opened) {
        return Some("opened values differ".into());
    }
    for index in 0..wanted.0.len() {
        let (a, b) = (frame_words(left, index), frame_words(right, index));
        for (what, far) in [("a bit", largest_bias(&a, &b)), ("bytes", largest_skew(&a, &b))] {
            if far > FAR {
                return Some(format!("{what} of frame {index}: {far} deviations"));
            }
        }
    }
    for index in 0..wanted.1.len() {
        let of = |views: &[View]| -> Vec<_> {
            views.iter().map(|view| view.shares[index].1.clone()).collect()
        };
        let (a, b) = (of(left), of(right));
        let gap = mean_gap(&a, &b, wanted.1[index].0);
        let far = largest_bias(&a, &b).max(largest_skew(&a, &b)).max(gap);
        if far > FAR {
            return Some(format!("share {index}: {far} deviations"));
        }
    }
    None
}

/// The same function by other weights: the hidden channels in reverse order.
fn reordered(model: &Model) -> Model {
    let mut other = model.clone();
    let [first, second, last] = [0, 1, 2].map(|i| *model.weights.keys().nth(i).unwrap());
    let reverse = |values: &mut [i32], block: usize| {
        let reversed: Vec<i32> = values.chunks(block).rev().flatten().copied().collect();
        values.copy_from_slice(&reversed);
    };
    for (node, block) in [(first, 2 * 9), (second, 4 * 9)] {
        let weights = other.weights.get_mut(&node).unwrap();
        reverse(&mut weights.weight, block);
        weights.bias.reverse();
    }
    let inner = other.weights.get_mut(&second).unwrap();
    inner.weight.chunks_mut(4 * 9).for_each(|row| reverse(row, 9));
    let last = other.weights.get_mut(&last).unwrap();
    last.weight.chunks_mut(16).for_each(|row| reverse(row, 4));
    other
}

fn input(model: &Model, value: impl Fn(usize) -> f32) -> Vec<i64> {
    let values: Vec<f32> = (0..2 * SIDE * SIDE).map(value).collect();
    model.graph.quantize_input(&values).unwrap()
}

/// The model under the suites whose products have shares in any ring.
fn suites(model: &Model) -> [Model; 2] {
    ["auto", "ufo"].map(|suite| {
        let mut model = model.clone();
        model.graph.suite = suite.into();
        model
    })
}

#[test]
fn threads_change_nothing_on_the_wire() {
    let model = network(&mut Random::seeded(24), Rounding::Exact);
    suites(&model).iter().for_each(threads_change_nothing);
}

fn threads_change_nothing(model: &Model) {
    let input = input(model, |i| (i % 5) as f32 / 5.0);
    let settings = Settings { ot: ot::Source::Ferret, ..Settings::default() };
    let plan = Plan::new(model.graph.clone(), settings).unwrap();
    let prepared = EncodedModel::new(&plan, model.clone()).unwrap();
    let runs = &[(Kind::Whole, input.as_slice())];
    let run = |ours, theirs| {
        let (client, server) = run_pair(
            |channel| client(channel, runs, ours, &mut Random::seeded(1)).unwrap(),
            |channel| {
                server(channel, (&plan, &prepared), runs, theirs, &mut Random::seeded(2)).unwrap()
            },
        );
        (client.value, client.frames, server.value, server.frames)
    };
    assert!(run(1, 1) == run(2, 3));
}

#[test]
fn a_client_cannot_tell_two_models_with_equal_outputs_apart() {
    let model = network(&mut Random::seeded(21), Rounding::Exact);
    suites(&model).iter().for_each(client_cannot_tell_from_reordered);
}

fn client_cannot_tell_from_reordered(model: &Model) {
    let other = reordered(model);
    assert_ne!(*model, other);
    let input = input(model, |i| (i % 7) as f32 / 7.0);
    let batch = [input.clone()];
    let clear = |model| graph::interpret_batch(model, &batch).unwrap();
    assert_eq!(clear(model), clear(&other));
    for reveal in [Reveal::Output, Reveal::Label] {
        let left = views(model, reveal, &input, 0..SESSIONS, Role::Client);
        let right = views(&other, reveal, &input, SESSIONS..2 * SESSIONS, Role::Client);
        assert_eq!(told_apart(&left, &right), None, "{reveal:?}");
    }
}

/// Two convolutions with equal shapes of input and output, one with a filter of 3x3 and one
/// of 5x5, whose weights have the same absolute values.
fn filter(side: usize) -> Model {
    let source = format!(
        r#"{{"name":"one","input":{{"name":"x","shape":[1,8,8]}},"output":"y","nodes":[
          {{"name":"conv","op":"Conv","inputs":["x"],"output":"y","kernel":[{side},{side}],"stride":[1,1],
            "padding":[{pad},{pad},{pad},{pad}],"dilation":[1,1],"groups":1,"weight":"w"}}]}}"#,
        pad = side / 2
    );
    let mut data = vec![0.0; side * side];
    let taps = data.len();
    data[0] = 0.5;
    data[1] = -0.25;
    data[taps - 1] = 1.0;
    let weight = FloatTensor { shape: vec![1, 1, side, side], data };
    let floats = Floats::from([("w".into(), weight)]);
    let ranges: Ranges = ["x", "y"].map(|name| (name.to_string(), (-1.0, 1.0))).into();
    let options = graph::Options {
        suite: "falcon-ntt".into(),
        nonlinear: graph::Nonlinear::Gc,
        rounding: Rounding::Exact,
        ..graph::Options::default()
    };
    let source = Source::from_json(&source).unwrap();
    let mut model = graph::lower(source, floats, &ranges.into(), &options).unwrap();
    graph::canonical_filters(&mut model);
    model
}

/// FALCON, section 5.2.3: the client's transcript, the offered plan with it, does not
/// depend on the size of a filter.
#[test]
fn a_client_cannot_tell_the_size_of_a_filter() {
    let (small, large) = (filter(3), filter(5));
    assert_ne!(small.weights, large.weights);
    assert_eq!(graph::digest(&small.graph), graph::digest(&large.graph));
    // Far from its border, a black image has equal results.
    let input = vec![0; 64];
    let left = views(&small, Reveal::Output, &input, 0..SESSIONS, Role::Client);
    let right = views(&large, Reveal::Output, &input, SESSIONS..2 * SESSIONS, Role::Client);
    assert_eq!(told_apart(&left, &right), None);
}

#[test]
fn a_server_cannot_tell_two_inputs_apart() {
    let model = network(&mut Random::seeded(22), Rounding::Stochastic);
    suites(&model).iter().for_each(server_cannot_tell_two_inputs);
}

fn server_cannot_tell_two_inputs(model: &Model) {
    let (dark, bright) = (input(model, |_| 0.0), input(model, |_| 1.0));
    let left = views(model, Reveal::Output, &dark, 0..SESSIONS, Role::Server);
    let right = views(model, Reveal::Output, &bright, SESSIONS..2 * SESSIONS, Role::Server);
    assert_eq!(told_apart(&left, &right), None);
}

/// The distinguisher works: it finds a byte that differs, a share that is smaller than
/// uniform ones, and another result.
#[test]
fn a_difference_would_be_found() {
    let model = network(&mut Random::seeded(23), Rounding::Exact);
    let (dark, bright) = (input(&model, |_| 0.0), input(&model, |_| 1.0));
    let views = |input: &[i64], seeds| views(&model, Reveal::Output, input, seeds, Role::Client);
    let (left, right) = (views(&dark, 0..SESSIONS), views(&dark, SESSIONS..2 * SESSIONS));
    assert_eq!(told_apart(&left, &right), None);
    let longest = |view: &View| (0..view.frames.len()).max_by_key(|i| view.frames[*i].len());
    let frame = longest(&left[0]).unwrap();
    let (mut low, mut high) = (left.clone(), right.clone());
    low.iter_mut().for_each(|view| view.frames[frame][100] &= 0xfe);
    high.iter_mut().for_each(|view| view.frames[frame][100] |= 1);
    assert!(told_apart(&low, &high).is_some_and(|why| why.contains("a bit of frame")));
    let mut small = right.clone();
    small.iter_mut().for_each(|view| view.shares[0].1.iter_mut().for_each(|word| *word /= 2));
    assert!(told_apart(&left, &small).is_some_and(|why| why.contains("share 0")));
    let other = views(&bright, 0..1);
    assert_eq!(told_apart(&left[..1], &other), Some("opened values differ".into()));
}
