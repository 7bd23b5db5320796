//! Prints what one thread per party makes in a second, in memory.
//!
//! `cargo run --release -p tacit-ot --example ot_throughput`

#![allow(clippy::print_stdout)]

use std::thread;
use std::time::Instant;

use ring::Random;
use tacit_ot::rot::{receiver_pads, sender_pads};
use tacit_ot::{CotReceiver, CotSender, Entry, Job, SessionId, Source};
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
    cots.extend(ch, WIDTHS.len() * COUNT)?;
    for job in WIDTHS.map(job) {
        let batch = cots.take(job.cots())?;
        let label = format!("1-of-{} pads, sender", job.entries());
        timed(&label, job.count, || sender_pads(job, batch))?;
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
    cots.extend(ch, WIDTHS.len() * COUNT)?;
    for job in WIDTHS.map(job) {
        let batch = cots.take(job.cots())?;
        let label = format!("1-of-{} pads, receiver", job.entries());
        timed(&label, job.count, || receiver_pads(job, batch))?;
    }
    Ok(())
}

fn job(choice_bits: u32) -> Job {
    Job { count: COUNT / choice_bits as usize, choice_bits, entry: Entry::Bits(2) }
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
