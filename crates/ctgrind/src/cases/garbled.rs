//! Garbled circuits: garbling and evaluation, and tags of committed bits.

use gc::tagged::{ALPHA_BITS, BitTags, MacKeys};
use mpc::garbled::checked::{self, Checked};
use mpc::garbled::{Clip, Function, Garbled, Ring, prepare};
use mpc::{Protocol, Share, auth};
use ot::ideal::deal;
use ring::Bits;
use wire::Role;

use super::inputs::{correlations, share};
use crate::case::Case;
use crate::run::{End, Run};

pub(super) const CASES: &[Case] = &[
    Case::new("garbled", "ReLU mod 2^16", |run| relu(run, Ring::Power(16))),
    Case::new("garbled", "ReLU mod a prime", |run| {
        relu(run, Ring::Prime(ring::Modulus::new(1_032_193).unwrap()));
    }),
    Case::new("garbled", "tags of committed bits, ReLU with tags", tagged),
    Case::new("garbled", "ReLU with tags before there are shares", ahead),
];

const COUNT: usize = 64;

fn relu(run: &mut Run, from: Ring) {
    let then = Function { drop: 0, floor: false, clip: Some(Clip { low: 0, saturate: 8 }) };
    let plan = Garbled::map(COUNT, from, 15, then, Ring::Power(12)).unwrap();
    let demand = plan.demand();
    // The client's circuits take OTs that it sends.
    let jobs = mpc::Demand::from(wire::Role::Client, demand.circuit_jobs());
    let end = |end: &mut End| {
        let ots = correlations(end, &jobs);
        let mut rng = end.run.random();
        // A value of 15 bits is below the prime too.
        let x = mpc::Share::new(share(end, COUNT, 15).words().to_vec(), from.bits());
        end.kernel(|channel| {
            let circuits = prepare(channel, &demand.circuits, ots, &mut rng).unwrap();
            let ready = mpc::Correlations::default().with_circuits(circuits);
            plan.run(channel, &[x], ready).unwrap()
        });
    };
    run.ends(end, end);
}

/// Bits of shares to which the client commits, and those that the circuit leaves out.
const COMMITTED: (u32, u32) = (20, 8);

fn tagged(run: &mut Run) {
    let (bits, skip) = COMMITTED;
    let then = Function { drop: 0, floor: false, clip: Some(Clip { low: 0, saturate: 8 }) };
    let plan = Checked::map(COUNT, COMMITTED, bits - skip, then, 26).unwrap();
    let tags = BitTags::new(COUNT, bits, bits + ALPHA_BITS).unwrap();
    let end = |end: &mut End| {
        let (sender, receiver) = deal(&mut end.dealer, tags.labels());
        let (words, mut rng) = (end.run.words(COUNT, bits), end.run.random());
        if end.channel.role() == Role::Client {
            let planes = (0..bits).map(|bit| Bits::of_words(&words, bit)).collect();
            end.kernel(|channel| {
                let committed = auth::commit(channel, receiver, planes).unwrap();
                drop(auth::tag_client(channel, &tags, &committed).unwrap());
                drop(checked::client(channel, &plan, &committed).unwrap());
            });
            return;
        }
        let keys = MacKeys::new(*sender.delta(), &mut rng);
        let x = Share::new(words, bits);
        end.kernel(|channel| {
            let committed = auth::accept(channel, sender, bits as usize, COUNT).unwrap();
            drop(auth::tag_server(channel, &tags, &keys, &committed, &mut rng).unwrap());
            drop(checked::server(channel, &plan, &keys, &committed, (&x, &[]), &mut rng).unwrap());
        });
    };
    run.ends(end, end);
}

fn ahead(run: &mut Run) {
    let (bits, skip) = COMMITTED;
    let then = Function { drop: 0, floor: false, clip: Some(Clip { low: 0, saturate: 8 }) };
    let plan = Checked::map(COUNT, COMMITTED, bits - skip, then, 26).unwrap();
    let shifts = auth::Shifted::new(COUNT, bits, skip).unwrap();
    let end = |end: &mut End| {
        let (sender, receiver) = deal(&mut end.dealer, bits as usize * COUNT);
        let (words, mut rng) = (end.run.words(COUNT, bits), end.run.random());
        if end.channel.role() == Role::Client {
            end.kernel(|channel| {
                let random = shifts.client(channel, receiver).unwrap();
                let circuits = checked::client_ahead(channel, &plan).unwrap();
                drop(shifts.tell(channel, &random, &words).unwrap());
                drop(circuits.evaluate(channel, &plan, random.bits()).unwrap());
            });
            return;
        }
        let keys = MacKeys::new(*sender.delta(), &mut rng);
        end.kernel(|channel| {
            let random = shifts.server(channel, sender, &keys, &mut rng).unwrap();
            let made =
                checked::server_ahead(channel, &plan, &keys, random.bits(), &[], &mut rng).unwrap();
            let (told, off) = shifts.told(channel, &random, &keys).unwrap();
            drop(told);
            let sum = words
                .iter()
                .zip(&off)
                .map(|(word, off)| word.wrapping_add(off << skip) & ring::word::mask(bits));
            drop(made.choose(channel, &plan, &keys, &Share::new(sum.collect(), bits)).unwrap());
        });
    };
    run.ends(end, end);
}
