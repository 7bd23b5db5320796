//! Every position of small tables, both ways, and what is refused.

use super::*;
use crate::ideal::deal_pads;
use crate::job::Entry;
use crate::one_of_n::opened::{ask, offer};
use ring::Random;

fn job(count: usize, choice_bits: u32, entry: Entry) -> Job {
    Job { count, choice_bits, entry }
}

/// `count` positions of `bits` bits as planes.
fn planes(positions: &[u64], bits: u32) -> Vec<Bits> {
    (0..bits).map(|bit| Bits::of_words(positions, bit)).collect()
}

fn random_table(rng: &mut Random, job: &Job) -> Table {
    let mut plane = |_| (0..job.count).map(|_| rng.word()).collect();
    let mut entries: Vec<Column> = (0..job.entries())
        .map(|_| Column {
            planes: (0..job.entry.planes()).map(&mut plane).collect(),
            words: vec![],
        })
        .collect();
    for entry in &mut entries {
        entry.words = job.entry.words().map(|bits| rng.uniform(job.count, bits)).collect();
    }
    Table(entries)
}

/// OTs where tables wait for choices, and where they do not.
fn check(rng: &mut Random, jobs: &[Job]) {
    check_way(rng, jobs, false);
    if jobs.iter().all(|job| job.choice_bits == 1) {
        check_way(rng, jobs, true);
    }
}

fn check_way(rng: &mut Random, jobs: &[Job], at_once: bool) {
    let at: Vec<Vec<u64>> = jobs
        .iter()
        .map(|j| (0..j.count as u64).map(|i| i & mask(j.choice_bits)).collect())
        .collect();
    let tables: Vec<Table> = jobs.iter().map(|job| random_table(rng, job)).collect();
    let wanted: Vec<Table> = tables.iter().map(|t| Table(t.0.clone())).collect();
    let (mut sender, receiver) = deal_pads(rng, jobs);
    for (pads, job) in sender.iter_mut().zip(jobs) {
        let spare = pads.take_spare();
        assert_eq!(spare.len(), job.entry.pad_planes() - job.entry.planes());
        assert!(spare.iter().all(|plane| plane.len() == job.count));
        assert!(pads.take_spare().is_empty());
    }
    let choices: Vec<_> =
        at.iter().zip(jobs).map(|(at, job)| planes(at, job.choice_bits)).collect();
    let (ours, theirs) = if at_once {
        let (asked, choices) = ask(receiver, &choices).unwrap();
        let (offered, masked) = offer(sender, tables).unwrap();
        (offered.finish(&choices).unwrap(), asked.finish(masked).unwrap())
    } else {
        let (chooser, choices) = choose(receiver, &choices).unwrap();
        let (ours, masked) = respond(sender, tables, &choices).unwrap();
        (ours, chooser.finish(masked).unwrap())
    };
    for (index, job) in jobs.iter().enumerate() {
        for (i, at) in at[index].iter().enumerate() {
            let entry = &wanted[index].0[*at as usize];
            for (bit, plane) in entry.planes.iter().enumerate() {
                let got = ours[index].planes[bit].get(i) ^ theirs[index].planes[bit].get(i);
                assert_eq!(got, plane.get(i));
            }
            for ((word, wanted), bits) in entry.words.iter().enumerate().zip(job.entry.words()) {
                let sum = ours[index].words[word][i].wrapping_add(theirs[index].words[word][i]);
                assert_eq!(sum & mask(bits), wanted[i]);
            }
        }
    }
}

#[test]
fn every_position_of_every_small_table() {
    let mut rng = Random::seeded(1);
    for choice_bits in 1..=8 {
        for entry in [
            Entry::Bits(1),
            Entry::Bits(11),
            Entry::Bits(128),
            Entry::Spared { bits: 19, spare: 3 },
            Entry::Word(13),
            Entry::Pair(64, 3),
        ] {
            // Each position 5 times, so that its random choice bits vary.
            check(&mut rng, &[job(5 << choice_bits, choice_bits, entry)]);
        }
    }
}

#[test]
fn jobs_of_different_kinds_share_a_message() {
    let jobs = [
        job(7, 3, Entry::Word(20)),
        job(0, 1, Entry::Bits(1)),
        job(33, 1, Entry::Bits(5)),
        job(1, 8, Entry::Pair(64, 1)),
        job(0, 2, Entry::Word(3)),
    ];
    check(&mut Random::seeded(2), &jobs);
    check(&mut Random::seeded(2), &[jobs[1], jobs[2], job(9, 1, Entry::Word(64))]);
}

#[test]
fn wrong_calls_are_defects_and_wrong_messages_the_peers_fault() {
    let mut rng = Random::seeded(3);
    let jobs = [job(4, 2, Entry::Word(8))];
    let good = [planes(&[0, 1, 2, 3], 2)];
    let mut defect = |choices: &[Vec<Bits>]| {
        let (_, receiver) = deal_pads(&mut rng, &jobs);
        matches!(choose(receiver, choices), Err(Error::Internal(_)))
    };
    assert!(defect(&[]));
    assert!(defect(&[planes(&[0, 1, 2], 2)]));
    assert!(defect(&[planes(&[0, 1, 2, 3], 3)]));
    let (sender, receiver) = deal_pads(&mut rng, &jobs);
    let (chooser, choices) = choose(receiver, &good).unwrap();
    let short = Lane::Words { count: 11, bits: 8 };
    let short = Lanes(vec![(short, Values::Words(vec![0; 11]))]);
    assert!(matches!(chooser.finish(short), Err(Error::Peer { .. })));
    assert!(matches!(respond(sender, vec![], &choices), Err(Error::Internal(_))));
    let (sender, _) = deal_pads(&mut rng, &jobs);
    let table = Table::words(vec![vec![0; 4]; 4]);
    assert!(matches!(offer(sender, vec![table]), Err(Error::Internal(_))));
    let (sender, _) = deal_pads(&mut rng, &jobs);
    let wide = Lane::Planes { planes: 3, count: 4 };
    let wide = Lanes(vec![(wide, Values::Planes(planes(&[0; 4], 3)))]);
    let table = Table::words(vec![vec![0; 4]; 4]);
    assert!(matches!(respond(sender, vec![table], &wide), Err(Error::Peer { .. })));
    let (sender, _) = deal_pads(&mut rng, &[job(4, 1, Entry::Word(8))]);
    let (offered, _) = offer(sender, vec![Table::words(vec![vec![0; 4]; 2])]).unwrap();
    assert!(matches!(offered.finish(&wide), Err(Error::Peer { .. })));
}

/// The bits that no message carries differ between the parties: the receiver's pad has nothing of
/// them that the exclusive or of two does not hide.
#[test]
fn spare_bits_come_from_the_pads_of_correlations() {
    let mut rng = Random::seeded(4);
    for choice_bits in 1..=6 {
        let job = job(999, choice_bits, Entry::Spared { bits: 100, spare: 28 });
        let (sending, receiving) = crate::ideal::deal(&mut rng, job.cots());
        let mut sender = crate::rot::sender_pads(job, sending).unwrap();
        let receiver = crate::rot::receiver_pads(job, receiving).unwrap();
        let spare = sender.take_spare();
        assert_eq!(spare.len(), 28);
        for (plane, known) in spare.iter().zip(&receiver.opened.planes[100..]) {
            let mut difference = plane.clone();
            difference.xor(known);
            for bits in [plane, &difference] {
                let ones: u64 = bits.iter().sum();
                assert!((350..650).contains(&ones), "{ones} ones of 999");
            }
        }
    }
    for entry in [
        Entry::Bits(129),
        Entry::Spared { bits: 0, spare: 1 },
        Entry::Spared { bits: 1, spare: 0 },
        Entry::Spared { bits: 100, spare: 29 },
        Entry::Spared { bits: u32::MAX, spare: 1 },
    ] {
        assert!(job(1, 1, entry).check().is_err());
    }
}
