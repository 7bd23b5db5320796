//! What a client of the default suite learns of weights when it leaves the protocol in one place: it shifts
//! its share before a ReLU, encrypts something else, or chooses otherwise in OTs. Its messages look like any
//! others to the server, which ends every session without an error.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use graph::{Linear, Model, ops::Relu};
use mpc::Share;
use wire::testing::rewritten_pair;
use wire::{Result, Role, memory_pair, tags};

use super::checked::{LAST, dense};
use super::checked_cheats::session_between;
use crate::plan::options::OptionsByStep;
use crate::plan::{Plan, Settings};
use crate::step::{Action, Local, Step};

const INPUTS: usize = 8;
/// Values of both hidden layers: those of a bit plane fill a byte.
const HIDDEN: usize = 8;
const OUTPUTS: usize = 4;
/// Bytes before the body of a frame.
const HEADER: usize = 5;
/// The degree of the ciphertexts of layers as small as these.
const DEGREE: usize = 2048;

/// A model of the default suite under attack.
struct Target {
    model: Model,
    options: OptionsByStep,
}

impl Target {
    fn new() -> Self {
        let model = dense("auto", [INPUTS, HIDDEN, HIDDEN, OUTPUTS], LAST).unwrap();
        Self { model, options: OptionsByStep::default() }
    }

    fn node(&self, name: &str) -> usize {
        self.model.graph.nodes.iter().position(|node| node.name == name).unwrap()
    }

    /// The tensor that a ReLU reads, its bits, and the largest value that leaves it.
    fn relu(&self, name: &str) -> (usize, u32, i64) {
        let node = &self.model.graph.nodes[self.node(name)];
        let (read, Relu { saturate, .. }) = (node.inputs[0], node.op.get().unwrap());
        (read, self.model.graph.tensors[read].format.bits, (1 << saturate) - 1)
    }

    /// What a layer's accumulators are divided by.
    fn unit(&self, name: &str) -> f64 {
        let linear = self.model.graph.nodes[self.node(name)].op.get::<Linear>().unwrap();
        f64::from(1u32 << linear.shift)
    }

    /// The weight of a layer from value `from` to value `to`: what is to be found.
    fn weight(&self, name: &str, to: usize, from: usize) -> f64 {
        let weights = &self.model.weights[&self.node(name)].weight;
        f64::from(weights[to * HIDDEN + from])
    }

    /// A session in which `local` steps are run before the ReLUs, and frames are rewritten.
    fn session(
        &self,
        ends: (wire::Channel, wire::Channel),
        local: Vec<(&str, Action)>,
        inputs: &[Vec<i64>],
    ) -> Vec<Vec<i64>> {
        let settings = Settings::default();
        let plan = Plan::chosen(self.model.graph.clone(), settings, self.options.clone()).unwrap();
        let local: Vec<_> =
            local.into_iter().map(|(at, action)| (self.relu(at).0, action)).collect();
        let fresh = self.model.graph.tensors.len() + 9;
        let steps = |mut steps: Vec<Step>| {
            for (number, (read, action)) in local.into_iter().enumerate() {
                let at = steps.iter().position(|step| step.reads.first() == Some(&read)).unwrap();
                let writes = fresh + number;
                steps[at].reads = vec![writes];
                let step =
                    Step { name: "deviate".into(), node: None, reads: vec![read], writes, action };
                steps.insert(at, step);
            }
            steps
        };
        let (results, server) = session_between(ends, (&self.model, &plan), steps, inputs);
        // The server has noticed nothing.
        server.unwrap();
        results.unwrap()
    }
}

/// Adds to the values of the client's share, other amounts in each run.
#[derive(Debug)]
struct Shift {
    by: Vec<Vec<i64>>,
    run: AtomicUsize,
}

impl Shift {
    fn action(by: Vec<Vec<i64>>) -> Action {
        Action::local(Self { by, run: AtomicUsize::new(0) })
    }
}

impl Local for Shift {
    fn operator(&self) -> &'static str {
        "shift"
    }

    fn run(&self, role: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        assert_eq!(role, Role::Client);
        let by = &self.by[self.run.fetch_add(1, Ordering::SeqCst)];
        let words =
            inputs[0].words().iter().zip(by).map(|(word, by)| word.wrapping_add(*by as u64));
        Ok(Share::new(words.collect(), inputs[0].bits()))
    }
}

/// One run of an attack by shifts: the input and what is added before both ReLUs.
struct Run {
    input: Vec<i64>,
    first: Vec<i64>,
    second: Vec<i64>,
}

impl Target {
    /// The results of runs with shifted shares, all in one session.
    fn runs(&self, runs: &[Run]) -> Vec<Vec<i64>> {
        let of = |shifts: fn(&Run) -> &Vec<i64>| {
            Shift::action(runs.iter().map(|run| shifts(run).clone()).collect())
        };
        let local = vec![("relu1", of(|run| &run.first)), ("relu2", of(|run| &run.second))];
        let inputs: Vec<Vec<i64>> = runs.iter().map(|run| run.input.clone()).collect();
        self.session(memory_pair(), local, &inputs)
    }

    /// What enters the second ReLU at `unit` for each first half of a run, less what does for the first of them:
    /// read off the results of the last layer, whose weights are known.
    fn second(&self, last: &[Vec<f64>], unit: usize, halves: &[(Vec<i64>, Vec<i64>)]) -> Vec<f64> {
        let (before, rest) = halves.split_first().unwrap();
        let base = self.read(last, (unit, MIDDLE), std::slice::from_ref(before))[0];
        let by = MIDDLE - base.round() as i64;
        self.read(last, (unit, by), rest).iter().map(|value| value - base).collect()
    }

    /// What enters the second ReLU at `unit`, where that and `by` add up to 0 to 255.
    fn read(
        &self,
        last: &[Vec<f64>],
        (unit, by): (usize, i64),
        halves: &[(Vec<i64>, Vec<i64>)],
    ) -> Vec<f64> {
        let none = vec![DOWN; HIDDEN];
        let nothing = Run { input: vec![0; INPUTS], first: vec![0; HIDDEN], second: none };
        let second = only(unit, by);
        let run = |(input, first): &(Vec<i64>, Vec<i64>)| Run {
            input: input.clone(),
            first: first.clone(),
            second: second.clone(),
        };
        let runs: Vec<Run> = std::iter::once(nothing).chain(halves.iter().map(run)).collect();
        let results = self.runs(&runs);
        let column: Vec<f64> = last.iter().map(|row| row[unit]).collect();
        let norm: f64 = column.iter().map(|weight| weight * weight).sum();
        let read = |result: &Vec<i64>| {
            let moved = result.iter().zip(&results[0]).map(|(result, base)| (result - base) as f64);
            let sum: f64 = moved.zip(&column).map(|(moved, weight)| moved * weight).sum();
            sum * self.unit("last") / norm - by as f64
        };
        results[1..].iter().map(read).collect()
    }
}

/// Added to a value from -128 to 127 that is read, so that a ReLU to 8 bits passes it.
const MIDDLE: i64 = 128;

/// Take what enters a ReLU to 8 bits, here within -64 to 127, to what leaves it as 0 or as the largest value.
const DOWN: i64 = -192;
const UP: i64 = 320;

/// Shifts that leave nothing of what enters a ReLU but one value, moved by `by`.
fn only(unit: usize, by: i64) -> Vec<i64> {
    (0..HIDDEN).map(|at| if at == unit { by } else { DOWN }).collect()
}

/// Asserts that weights were found up to `most` of their root of the mean square.
fn found(what: &str, pairs: impl Iterator<Item = (f64, f64)>, most: f64) {
    let pairs: Vec<(f64, f64)> = pairs.collect();
    let off: f64 = pairs.iter().map(|(guess, weight)| (guess - weight).powi(2)).sum();
    let all: f64 = pairs.iter().map(|(_, weight)| weight * weight).sum();
    let relative = (off / all).sqrt();
    assert!(relative < most, "{what}: {relative}");
}

/// The last layer's weights from shifts before the second ReLU, then the second layer's from shifts before the
/// first, then the first layer's from inputs.
#[test]
fn shifts_of_shares_recover_the_weights_of_every_layer() {
    let target = Target::new();
    let (zero, still) = (vec![0; INPUTS], vec![0; HIDDEN]);
    let (_, _, top) = target.relu("relu2");
    // A value is 0 or the largest there is, and nothing else changes.
    let both = |unit| [DOWN, UP].map(|by| only(unit, by));
    let runs: Vec<Run> = (0..HIDDEN)
        .flat_map(both)
        .map(|second| Run { input: zero.clone(), first: still.clone(), second })
        .collect();
    let results = target.runs(&runs);
    let guess = |unit: usize, output: usize| {
        let [low, high] = [0, 1].map(|at| results[2 * unit + at][output]);
        (high - low) as f64 * target.unit("last") / top as f64
    };
    let last: Vec<Vec<f64>> =
        (0..OUTPUTS).map(|output| (0..HIDDEN).map(|unit| guess(unit, output)).collect()).collect();
    let all = |rows: usize| (0..rows).flat_map(|to| (0..HIDDEN).map(move |from| (to, from)));
    let pairs = |name: &'static str, guess: Vec<Vec<f64>>| {
        let target = &target;
        let rows = guess.len();
        all(rows).map(move |(to, from)| (guess[to][from], target.weight(name, to, from)))
    };
    found("last layer", pairs("last", last.clone()), 0.02);

    // What enters the second ReLU with one value of the first at its largest, less what does with none.
    let (_, _, top) = target.relu("relu1");
    let halves: Vec<(Vec<i64>, Vec<i64>)> = std::iter::once(vec![DOWN; HIDDEN])
        .chain((0..HIDDEN).map(|unit| only(unit, UP)))
        .map(|first| (zero.clone(), first))
        .collect();
    let unit = target.unit("second");
    let row = |to: usize| -> Vec<f64> {
        let read = target.second(&last, to, &halves);
        read.iter().map(|value| value * unit / top as f64).collect()
    };
    let second: Vec<Vec<f64>> = (0..HIDDEN).map(row).collect();
    found("second layer", pairs("second", second.clone()), 0.05);

    // What enters the first ReLU for inputs of one value: through the value of the second ReLU that it moves most.
    let largest = 127;
    let inputs: Vec<Vec<i64>> = std::iter::once(zero.clone())
        .chain(
            (0..INPUTS).map(|at| (0..INPUTS).map(|i| if i == at { largest } else { 0 }).collect()),
        )
        .collect();
    let row = |unit: usize| -> Vec<f64> {
        let strength = |to: &usize| second[*to][unit].abs();
        let by = (0..HIDDEN).max_by(|a, b| strength(a).total_cmp(&strength(b))).unwrap();
        let halves: Vec<_> =
            inputs.iter().map(|input| (input.clone(), only(unit, MIDDLE))).collect();
        let read = target.second(&last, by, &halves);
        let value = |read: &f64| read * target.unit("second") / second[by][unit];
        read.iter().map(|read| value(read) * target.unit("first") / largest as f64).collect()
    };
    let first: Vec<Vec<f64>> = (0..HIDDEN).map(row).collect();
    found("first layer", pairs("first", first), 0.15);
}

/// Adds `2^bit` to coefficient `at` of the body of a frame with a ciphertext, of `degree` numbers behind its seed.
/// `below` is the distance from `bit` to the top of a number.
fn add(frame: &mut [u8], at: usize, below: u32) {
    let body = &mut frame[HEADER..];
    let bits = body.len() / (DEGREE / 8);
    let start = body.len() % (DEGREE / 8) * 8 + at * bits;
    // Adds with carries up to the top bit of the number.
    for bit in start + bits - below as usize..start + bits {
        body[bit / 8] ^= 1 << (bit % 8);
        if body[bit / 8] >> (bit % 8) & 1 == 1 {
            break;
        }
    }
}

/// A client whose ciphertext for the last layer is of its share plus the divisor of the accumulators at one value sees
/// the weights of that value added to its results, each of them exactly.
#[test]
fn ciphertexts_of_something_else_recover_weights_exactly() {
    let target = Target::new();
    let bits = target.model.graph.tensors[target.model.graph.output].format.bits;
    let mut sent = 0;
    let rewrite = move |frame: &mut Vec<u8>| {
        if frame[0] == tags::COEFFICIENT_INPUTS {
            sent += 1;
            // Each run sends one ciphertext for each layer.
            let (run, layer) = ((sent - 1) / 3, (sent - 1) % 3);
            if let (2, Some(unit)) = (layer, usize::checked_sub(run, 1)) {
                add(frame, unit, bits);
            }
        }
    };
    let input = vec![5; INPUTS];
    let inputs = vec![input; 1 + HIDDEN];
    let results = target.session(rewritten_pair(rewrite), Vec::new(), &inputs);
    for (unit, result) in results[1..].iter().enumerate() {
        for (output, (result, honest)) in result.iter().zip(&results[0]).enumerate() {
            let found = ring::word::signed((result - honest) as u64, bits);
            assert_eq!(found as f64, target.weight("last", output, unit));
        }
    }
}

/// Notes the client's share, and leaves it as it is.
#[derive(Debug)]
struct Note(Arc<Mutex<Vec<u64>>>);

impl Local for Note {
    fn operator(&self) -> &'static str {
        "note"
    }

    fn run(&self, _: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        *self.0.lock().unwrap() = inputs[0].words().to_vec();
        Ok(inputs[0].clone())
    }
}

impl Target {
    /// Whether results stay the same, for each input, where the client compares `unit` of the first ReLU as if it
    /// were less by so much. It changes choices of OTs only, and tries again where the difference borrows from the
    /// sign, which is no choice of an OT.
    fn stays(&self, unit: usize, asked: &[(Vec<i64>, i64)]) -> Vec<bool> {
        let mut stays = vec![None; asked.len()];
        while stays.contains(&None) {
            let open: Vec<usize> = (0..asked.len()).filter(|at| stays[*at].is_none()).collect();
            let some: Vec<_> = open.iter().map(|at| asked[*at].clone()).collect();
            for (at, found) in open.into_iter().zip(self.tries(unit, &some)) {
                stays[at] = found;
            }
        }
        stays.into_iter().flatten().collect()
    }

    /// [`Self::stays`], where no difference borrows.
    fn tries(&self, unit: usize, asked: &[(Vec<i64>, i64)]) -> Vec<Option<bool>> {
        let (_, bits, _) = self.relu("relu1");
        let both = |(input, less): &(Vec<i64>, i64)| [(input.clone(), 0), (input.clone(), *less)];
        let (inputs, moves): (Vec<Vec<i64>>, Vec<i64>) = asked.iter().flat_map(both).unzip();
        let noted = Arc::new(Mutex::new(Vec::<u64>::new()));
        let borrowed = Arc::new(Mutex::new(Vec::new()));
        let (share, borrows, mut moves) = (noted.clone(), borrowed.clone(), moves.into_iter());
        let rewrite = move |frame: &mut Vec<u8>| {
            let [tag, _, _, _, _, body @ ..] = frame.as_mut_slice() else { return };
            // The choices of the comparison have a plane for each bit below the sign.
            if *tag != tags::TABLE_CHOICES || body.len() != bits as usize - 1 {
                return;
            }
            let words = std::mem::take(&mut *share.lock().unwrap());
            let Some(word) = words.get(unit) else { return };
            let flips = word ^ word.wrapping_sub(moves.next().unwrap() as u64);
            for (bit, plane) in body.iter_mut().enumerate() {
                *plane ^= ((flips >> bit & 1) as u8) << unit;
            }
            borrows.lock().unwrap().push(flips >> body.len() & 1 == 1);
        };
        let local = vec![("relu1", Action::local(Note(noted)))];
        let results = self.session(rewritten_pair(rewrite), local, &inputs);
        let borrowed = borrowed.lock().unwrap();
        let pairs = results.chunks_exact(2).zip(borrowed.chunks_exact(2));
        pairs.map(|(pair, borrowed)| (!borrowed[1]).then(|| pair[0] == pair[1])).collect()
    }

    /// What enters the first ReLU at `unit` for each input, where that is from 1 to 255, found bit by bit by whether
    /// results stay the same.
    fn search(&self, unit: usize, inputs: &[Vec<i64>]) -> Vec<i64> {
        let mut found = vec![0; inputs.len()];
        for bit in (0..8).rev() {
            let asked = inputs.iter().zip(&found).map(|(x, found)| (x.clone(), found + (1 << bit)));
            let stays = self.stays(unit, &asked.collect::<Vec<_>>());
            let all = found.iter_mut().zip(stays).filter(|(_, stays)| *stays);
            all.for_each(|(found, _)| *found += 1 << bit);
        }
        found
    }
}

/// A client that only looks at whether an answer is the usual one finds what enters a ReLU, and with that the weights
/// before it.
#[test]
fn selective_failures_by_wrong_choices_of_ots_recover_weights() {
    let mut target = Target::new();
    target.options.set(target.node("relu1"), "masked".parse().unwrap());
    let unit = 0;
    let mut rng = ring::Random::seeded(71);
    let mut some = || rng.uniform(INPUTS, 7).iter().map(|x| *x as i64 - 64).collect::<Vec<i64>>();
    let tried: Vec<Vec<i64>> = (0..24).map(|_| some()).collect();
    let values = target.search(unit, &tried);
    let (base, from) =
        values.into_iter().zip(tried).min_by_key(|(value, _)| (value - 100).abs()).unwrap();
    let step = |at: usize| if from[at] < 0 { 100 } else { -100 };
    let inputs: Vec<Vec<i64>> = (0..INPUTS)
        .map(|at| (0..INPUTS).map(|i| from[i] + if i == at { step(at) } else { 0 }).collect())
        .collect();
    let values = target.search(unit, &inputs);
    let guesses = values.iter().enumerate().map(|(at, value)| {
        let guess = (value - base) as f64 * target.unit("first") / step(at) as f64;
        (guess, target.weight("first", unit, at))
    });
    found("first layer, a row", guesses, 0.1);
}
