//! The chain's cost in bits, and exhaustively that what its receiver sees tells nothing.

use ot::ideal::random_ots;
use ring::Random;
use ring::word::mask;

use super::*;
use crate::boolean::compare::{Comparison, Radix};

/// Bits of the answer to one comparison.
fn answer_bits(bits: u32, goal: Goal) -> u64 {
    let chain = Chain::new(bits, goal).unwrap();
    let planes = chain.layout(8).into_iter().map(|lane| lane.len());
    planes.sum()
}

#[test]
fn answers_take_the_bits_of_the_table() {
    let carry = [8, 10, 11, 12, 14, 16].map(|bits| answer_bits(bits, Goal::Carry));
    assert_eq!(carry, [48, 72, 86, 102, 134, 168]);
    let middle = [(8, 11), (4, 7), (8, 15)];
    let middle = middle.map(|(low, bits)| answer_bits(bits, Goal::Middle { low }));
    assert_eq!(middle, [120, 62, 306]);
}

#[test]
fn every_width_takes_two_rounds_and_no_gates() {
    for bits in 1..=63 {
        let plan = Comparison::carry(bits, Radix::Chain);
        assert!(plan.chain.is_some() && plan.circuit.levels.is_empty());
        assert_eq!(plan.cost(100).rounds, 2);
        assert_eq!(plan.demand(100).cots(Role::Server), 100 * bits as usize);
        for low in 1..bits {
            let plan = Comparison::with_middle(low, bits, Radix::Chain);
            assert!(plan.chain.is_none() || plan.cost(100).rounds == 2, "{low} {bits}");
        }
    }
}

/// Pads of a job for one element each, as numbers whose bits are its planes.
fn columns(job: &Job, pads: &[Vec<u64>]) -> Vec<ot::Column> {
    let column = |words: &Vec<u64>| ot::Column {
        planes: (0..job.entry.pad_planes() as u32).map(|bit| Bits::of_words(words, bit)).collect(),
        words: Vec::new(),
    };
    pads.iter().map(column).collect()
}

/// The answers to one query under every choice of the pads that the receiver does not have,
/// sorted: element i of the batch has the bits of i as these pads. `seen` are the pads that it has.
fn answers(chain: &Chain, operands: [u64; 2], choices: u64, seen: &[u64]) -> Vec<Vec<u64>> {
    let widths = chain.digits.iter().map(|digit| {
        let entry = digit.job(1).entry.pad_planes() as u32;
        (entry, ((1 << digit.width) - 1) * entry)
    });
    let widths: Vec<(u32, u32)> = widths.collect();
    let count = 1usize << widths.iter().map(|(_, hidden)| hidden).sum::<u32>();
    let (mut sending, mut receiving, mut used) = (Vec::new(), Vec::new(), 0);
    for ((digit, (entry, hidden)), seen) in chain.digits.iter().zip(&widths).zip(seen) {
        let job = digit.job(count);
        let at = (choices >> digit.shift) & mask(digit.width);
        let mut place = 0;
        let pads: Vec<Vec<u64>> = (0..1 << digit.width)
            .map(|j| {
                if j == at {
                    return vec![seen & mask(*entry); count];
                }
                let first = used + place;
                place += entry;
                (0..count as u64).map(|i| (i >> first) & mask(*entry)).collect()
            })
            .collect();
        used += hidden;
        let at = vec![at; count];
        let planes = (0..digit.width).map(|bit| Bits::of_words(&at, bit)).collect();
        let (sender, receiver) = random_ots(job, columns(&job, &pads), planes);
        sending.push(sender);
        receiving.push(receiver);
    }
    let [asked, told] = operands.map(|operand| vec![operand; count]);
    let digits: Vec<_> = chain.digits.iter().map(|digit| digit.of(&asked)).collect();
    let (chooser, choices) = choose(receiving, &digits).unwrap();
    let (ours, answer) = chain.answer(sending, &told, &choices).unwrap();
    let ours = outcome(ours).unwrap();
    let planes = answer.0.iter().flat_map(|(_, values)| match values {
        Values::Planes(planes) => planes.clone(),
        Values::Words(_) => unreachable!(),
    });
    let planes: Vec<Bits> = planes.collect();
    let mut views = vec![vec![0; planes.len().div_ceil(64)]; count];
    for (at, plane) in planes.iter().enumerate() {
        let bits = views.iter_mut().zip(plane.iter());
        bits.for_each(|(view, bit)| view[at / 64] |= bit << (at % 64));
    }
    let theirs = outcome(chain.open(chooser, answer).unwrap()).unwrap();
    let carry = (operands[0] > operands[1]) as u64;
    assert!((0..count).all(|i| ours[0].get(i) ^ theirs[0].get(i) == carry));
    views.sort_unstable();
    views
}

/// What the receiver sees, given its operand, its choices and its pads, is distributed alike for
/// every operand of the sender.
#[test]
fn the_view_does_not_depend_on_the_senders_operand() {
    let mut rng = Random::seeded(60);
    let cases = [
        (Goal::Carry, vec![1, 1, 1], 64),
        (Goal::Carry, vec![2, 1], 32),
        (Goal::Carry, vec![1, 2], 32),
        (Goal::Carry, vec![2, 1, 1], 2),
        (Goal::Middle { low: 1 }, vec![1, 1], 16),
    ];
    for (goal, widths, samples) in cases {
        let bits: u32 = widths.iter().sum();
        let chain = Chain::of_widths(bits, goal, widths);
        for sample in 0..samples {
            // Every pair of an operand and choices, with other pads each.
            let (asked, choices) = (sample & mask(bits), (sample >> bits) & mask(bits));
            let seen = rng.uniform(chain.digits.len(), 20);
            let views = |told| answers(&chain, [asked, told], choices, &seen);
            let first = views(0);
            assert!(first.windows(2).any(|pair| pair[0] != pair[1]));
            assert!((1..1 << bits).all(|told| views(told) == first), "{goal:?} {asked} {choices}");
        }
    }
}

#[test]
fn another_layout_of_choices_is_refused() {
    let chain = Chain::new(5, Goal::Carry).unwrap();
    let (sending, _) = ot::ideal::deal_pads(&mut Random::seeded(61), &chain.jobs(8));
    let lane = Lane::Planes { planes: 1, count: 8 };
    let short = Lanes(vec![(lane, Values::Planes(vec![Bits::zeros(8)])); chain.digits.len()]);
    let refused = chain.answer(sending, &[0; 8], &short);
    assert!(matches!(refused, Err(wire::Error::Peer { .. })));
}
