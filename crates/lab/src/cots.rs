//! Correlated OTs on their own: made and dropped chunk by chunk, a sample kept.

use ot::{CotReceiver, CotSender, ReceiverBatch, SenderBatch};
use wire::{Channel, Packed, Phase, Result, Segment, tags};

/// OTs made at a time.
const CHUNK: usize = 1 << 16;
/// About so many are opened to be checked.
const SAMPLE: usize = 1 << 14;

/// Server to client, after the measurement: both pads of some OTs.
type Correlations = Packed<{ tags::BENCH_PADS }>;

/// The counts of the extensions that make `count`.
pub(crate) fn chunks(count: usize) -> impl ExactSizeIterator<Item = usize> {
    (0..count).step_by(CHUNK).map(move |done| CHUNK.min(count - done))
}

/// How many of every chunk are kept.
fn kept(count: usize) -> usize {
    (SAMPLE / chunks(count).len().max(1)).max(1)
}

/// Makes `count` with the server.
pub(crate) fn receive(
    channel: &mut Channel,
    cots: &mut CotReceiver,
    count: usize,
) -> Result<Vec<ReceiverBatch>> {
    channel.enter(Phase::Preprocess, None);
    cots.reserve(count);
    let make = |count_now| {
        cots.extend(channel, count_now)?;
        Ok(cots.take(count_now)?.split_off(kept(count)))
    };
    chunks(count).map(make).collect()
}

/// Makes `count` with the client.
pub(crate) fn send(
    channel: &mut Channel,
    cots: &mut CotSender,
    count: usize,
) -> Result<Vec<SenderBatch>> {
    channel.enter(Phase::Preprocess, None);
    cots.reserve(count);
    let make = |count_now| {
        cots.extend(channel, count_now)?;
        Ok(cots.take(count_now)?.split_off(kept(count)))
    };
    chunks(count).map(make).collect()
}

/// Opens the sample to the client.
pub(crate) fn show(channel: &mut Channel, sample: Vec<SenderBatch>) -> Result<()> {
    let pairs = sample.into_iter().flat_map(|batch| batch.random_pairs(64));
    channel.send(&Correlations::one(pairs.flatten().collect(), 64))
}

/// 1 for each OT whose pad is not the one of the pair that was chosen.
pub(crate) fn wrong(channel: &mut Channel, sample: Vec<ReceiverBatch>) -> Result<Vec<u64>> {
    let count = sample.iter().map(ReceiverBatch::len).sum::<usize>();
    let pairs: Correlations = channel.receive(&vec![Segment { count: 2 * count, bits: 64 }])?;
    let pairs = pairs.concat();
    let opened = sample.into_iter().flat_map(|batch| {
        let (choices, pads) = batch.random(64);
        choices.into_iter().zip(pads)
    });
    let pairs = pairs.as_chunks::<2>().0.iter();
    Ok(opened
        .zip(pairs)
        .map(|((choice, pad), [zero, one])| {
            u64::from(ring::word::select(choice, *one, *zero) != pad)
        })
        .collect())
}
