//! Prints what one thread per party makes in a second, in memory.
//!
//! `cargo run --release -p tacit-ot --example ot_throughput`

#![allow(clippy::print_stdout)]

use std::thread;
use std::time::Instant;

use ring::Random;
use tacit_ot::transfer::{choices_layout, masked_layout};
use tacit_ot::{CotReceiver, CotSender, Group, Job, SessionId, Source, choose, respond};
use wire::{Channel, Result, memory_pair};

/// Correlations of a round, few enough for their memory to be reused.
const COUNT: usize = 1 << 16;
const ROUNDS: usize = 256;
const SESSION: SessionId = SessionId([0; 32]);
const SOURCES: [Source; 4] =
    [Source::SoftSpoken2, Source::SoftSpoken4, Source::SoftSpoken8, Source::Ferret];
const WIDTHS: [u32; 4] = [1, 2, 4, 8];

fn main() -> Result<()> {
    let (mut client, mut server) = memory_pair();
    thread::scope(|scope| {
        let peer = scope.spawn(move || receiver(&mut client));
        sender(&mut server)?;
        peer.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    })
}

fn sender(ch: &mut Channel) -> Result<()> {
    let mut rng = random()?;
    for source in SOURCES {
        let mut cots = CotSender::setup(ch, &mut rng, &SESSION, source)?;
        cots.reserve(ROUNDS * COUNT);
        timed(&format!("correlations, {source}"), ROUNDS * COUNT, || {
            (0..ROUNDS).try_for_each(|_| cots.extend(ch, COUNT).and(cots.take(COUNT).map(drop)))
        })?;
    }
    let mut cots =
        timed("setup", 0, || CotSender::setup(ch, &mut rng, &SESSION, Source::SoftSpoken4))?;
    cots.extend(ch, 2 * COUNT)?;
    let batch = cots.take(COUNT)?;
    timed("random transfers, sender", COUNT, || batch.random_pairs(64));
    for (width, jobs) in WIDTHS.map(|width| (width, jobs(width))) {
        let tables = vec![rng.uniform(jobs[0].count << width, 16)];
        let batch = cots.take(jobs[0].cots())?;
        let choices = ch.receive(&choices_layout(&jobs))?;
        let label = format!("1-of-{} transfers of 16 bits, sender", 1 << width);
        let answer = || respond(&jobs, batch, &tables, &choices);
        let (_, masked) = timed(&label, jobs[0].count, answer)?;
        ch.send(&masked)?;
    }
    Ok(())
}

fn receiver(ch: &mut Channel) -> Result<()> {
    let mut rng = random()?;
    for source in SOURCES {
        let mut cots = CotReceiver::setup(ch, &mut rng, &SESSION, source)?;
        cots.reserve(ROUNDS * COUNT);
        for _ in 0..ROUNDS {
            cots.extend(ch, COUNT)?;
            cots.take(COUNT)?;
        }
    }
    let mut cots = CotReceiver::setup(ch, &mut rng, &SESSION, Source::SoftSpoken4)?;
    cots.extend(ch, 2 * COUNT)?;
    let batch = cots.take(COUNT)?;
    timed("random transfers, receiver", COUNT, || batch.random(64));
    for (width, jobs) in WIDTHS.map(|width| (width, jobs(width))) {
        let positions = vec![rng.uniform(jobs[0].count, width)];
        let batch = cots.take(jobs[0].cots())?;
        let label = format!("1-of-{} transfers of 16 bits, chooser", 1 << width);
        let choose = || choose(&jobs, batch, &positions);
        let (chooser, choices) = timed(&label, jobs[0].count, choose)?;
        ch.send(&choices)?;
        chooser.finish(&ch.receive(&masked_layout(&jobs))?)?;
    }
    Ok(())
}

fn jobs(choice_bits: u32) -> [Job; 1] {
    let count = (COUNT / 4) >> choice_bits;
    [Job { count, choice_bits, value_bits: 16, group: Group::Add }]
}

fn timed<T>(what: &str, items: usize, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    let seconds = start.elapsed().as_secs_f64();
    let rate = items as f64 / seconds / 1e6;
    println!(
        "{what}: {:.1} ms{}",
        1e3 * seconds,
        match items {
            0 => String::new(),
            _ => format!(", {rate:.2} M/s"),
        }
    );
    result
}

fn random() -> Result<Random> {
    Random::from_os().map_err(|error| wire::Error::transport(error.to_string()))
}
