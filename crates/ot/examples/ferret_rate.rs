//! Rates of the silent source.
#![allow(clippy::print_stdout)]
use ring::Random;
use std::thread;
use std::time::Instant;
use tacit_ot::{CotReceiver, CotSender, SessionId, Source};
use wire::{Result, memory_pair};
const SESSION: SessionId = SessionId([0; 32]);
const CHUNK: usize = 1 << 16;
fn main() -> Result<()> {
    let count: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(8_000_000);
    let source: Source = std::env::args().nth(2).map_or(Ok(Source::Ferret), |a| a.parse())?;
    let threads: usize = std::env::args().nth(3).and_then(|a| a.parse().ok()).unwrap_or(1);
    let (mut client, mut server) = memory_pair();
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut rng = Random::from_os().unwrap();
            let mut cots = CotReceiver::setup(&mut client, &mut rng, &SESSION, source).unwrap();
            cots.set_threads(threads);
            cots.reserve(count);
            for _ in (0..count).step_by(CHUNK) {
                cots.extend(&mut client, CHUNK).unwrap();
                cots.take(CHUNK).unwrap();
            }
            println!("receiver {:.2} M/s", count as f64 / start.elapsed().as_secs_f64() / 1e6);
        });
        let mut rng = Random::from_os().unwrap();
        let mut cots = CotSender::setup(&mut server, &mut rng, &SESSION, source).unwrap();
        cots.set_threads(threads);
        cots.reserve(count);
        for _ in (0..count).step_by(CHUNK) {
            cots.extend(&mut server, CHUNK).unwrap();
            cots.take(CHUNK).unwrap();
        }
        println!("sender {:.2} M/s", count as f64 / start.elapsed().as_secs_f64() / 1e6);
        println!("{:?}", server.meter().cost());
    });
    Ok(())
}
