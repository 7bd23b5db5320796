//! Oblivious transfers, from base OTs to tables.

use ot::ideal::deal;
use ot::one_of_n::{self, Masked, Table};
use ot::rot::{fill_receiver, fill_sender};
use ot::{Column, Entry, Job, SessionId, Source, measure, rot, setup_both};
use ring::Bits;
use wire::Role;

use crate::case::Case;
use crate::run::{End, Run};

pub(super) const CASES: &[Case] = &[
    Case::new("pads", "1 of 2", |run| pads(run, 1)),
    Case::new("pads", "1 of 16", |run| pads(run, 4)),
    Case::new("pads", "1 of 256", |run| pads(run, 8)),
    Case::new("transfer", "tables of 4 bits, 1 of 16", |run| tables(run, 4, Entry::Bits(4))),
    Case::new("transfer", "tables of integers, 1 of 2", |run| tables(run, 1, Entry::Word(24))),
    Case::new("transfer", "tables of integers, 1 of 256", |run| tables(run, 8, Entry::Word(12))),
    Case::new("transfer", "base OTs, SoftSpoken k=2 and its check", |run| {
        extended(run, Source::SoftSpoken2, 2000);
    }),
    Case::new("transfer", "base OTs, SoftSpoken k=4 and its check", |run| {
        extended(run, Source::SoftSpoken4, 2000);
    }),
    Case::new("transfer", "base OTs, SoftSpoken k=8 and its check", |run| {
        extended(run, Source::SoftSpoken8, 2000);
    }),
    Case::new("transfer", "Ferret: trees, secret positions, parities", |run| {
        extended(run, Source::Ferret, 2000);
    }),
];

/// Elements that pads and tables are made for.
const ELEMENTS: usize = 300;

fn pads(run: &mut Run, choice_bits: u32) {
    let (sender, receiver) = deal(&mut run.random(), ELEMENTS * choice_bits as usize);
    run.kernel("sender", || measure::sender_pads(sender, choice_bits));
    run.kernel("receiver", || measure::receiver_pads(receiver, choice_bits));
}

/// The server's tables, the client's positions.
fn tables(run: &mut Run, choice_bits: u32, entry: Entry) {
    let job = Job { count: ELEMENTS, choice_bits, entry };
    let asks = |end: &mut End| {
        let (_, receiver) = deal(&mut end.dealer, job.cots());
        let pads = rot::receiver_pads(job, receiver).unwrap();
        let choices: Vec<Bits> = (0..choice_bits).map(|_| bits(end.run)).collect();
        end.kernel(|channel| {
            let (chooser, message) = one_of_n::choose(vec![pads], &[choices]).unwrap();
            channel.send(&message).unwrap();
            let masked: Masked = channel.receive(&one_of_n::masked_layout(&[job])).unwrap();
            chooser.finish(masked).unwrap()
        });
    };
    let answers = |end: &mut End| {
        let (sender, _) = deal(&mut end.dealer, job.cots());
        let pads = rot::sender_pads(job, sender).unwrap();
        let table = Table((0..1 << choice_bits).map(|_| column(end.run, entry)).collect());
        end.kernel(|channel| {
            let layout = one_of_n::choices_layout(&[job]);
            let choices: one_of_n::Choices = channel.receive(&layout).unwrap();
            let (shares, message) = one_of_n::respond(vec![pads], vec![table], &choices).unwrap();
            channel.send(&message).unwrap();
            shares
        });
    };
    run.ends(asks, answers);
}

fn bits(run: &mut Run) -> Bits {
    Bits::new(run.words(ELEMENTS.div_ceil(64), 64), ELEMENTS)
}

fn column(run: &mut Run, entry: Entry) -> Column {
    Column {
        planes: (0..entry.planes()).map(|_| bits(run)).collect(),
        words: entry.words().map(|bits| run.words(ELEMENTS, bits)).collect(),
    }
}

/// A session's start, and random OTs that the client sends.
fn extended(run: &mut Run, source: Source, count: usize) {
    let jobs = [Job { count, choice_bits: 1, entry: Entry::Word(32) }];
    let end = |end: &mut End| {
        let mut rng = end.run.random();
        let session = SessionId([7; 32]);
        end.kernel(|channel| {
            let (mut ours, mut theirs) = setup_both(channel, &mut rng, &session, source).unwrap();
            match channel.role() {
                Role::Client => drop(fill_sender(channel, &mut ours, &jobs).unwrap()),
                Role::Server => drop(fill_receiver(channel, &mut theirs, &jobs).unwrap()),
            }
        });
    };
    run.ends(end, end);
}
