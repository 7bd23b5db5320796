//! The server's products, masked: sent while the rest of them is made, or held back.

use he::rlwe::{Ciphertext, PublicKey};
use ring::Random;
use std::collections::VecDeque;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::layer::{INPUTS, Layer, RESPONSES};
use super::packing::Place;
use super::product::{ServerWeights, Tile};
use super::shares::scatter;
use crate::defect::defect;
use crate::linear::transport::Worker;
use crate::linear::transport::rlwe::next_ciphertext;
use crate::linear::transport::{Received, misuse, send_chunks};
use crate::parallel;

/// Segments of a response: c1 and the useful part of c0.
type Parts = Vec<Vec<u64>>;

/// Responses that wait to be sent, and the masks of the products in them.
pub(super) struct Held {
    responses: Vec<Parts>,
    pub(super) masks: Zeroizing<Vec<u64>>,
}

impl Held {
    /// Sends the responses; the masks stay.
    pub(super) fn send(&mut self, channel: &mut Channel, layer: &Layer) -> Result<()> {
        let responses = std::mem::take(&mut self.responses);
        send_all(channel, layer, responses.into_iter().map(Ok))
    }
}

/// What the server multiplies with and answers with.
pub(super) struct Server<'a> {
    pub(super) layer: &'a Layer,
    pub(super) key: &'a PublicKey,
    pub(super) weights: &'a ServerWeights,
}

/// Multiplies what the client encrypted plus `own`, mod 2^P, with the weights; sends nothing.
pub(super) fn hold(
    channel: &mut Channel,
    Server { layer, key, weights }: Server<'_>,
    own: &[u64],
    worker: &mut Worker<'_>,
) -> Result<Held> {
    let mut maker = Maker::new(layer, key, worker)?;
    let mut arrivals = Arrivals::new(layer, own);
    let mut responses = Vec::with_capacity(layer.packing.responses());
    for places in tiles(layer, &layer.packing.places().collect::<Vec<_>>()) {
        let mut tile = arrivals.tile(channel, weights, places, maker.threads)?;
        responses.extend(maker.respond(&mut tile, places)?);
    }
    Ok(Held { responses, masks: maker.masks })
}

/// Multiplies what the client encrypted plus `own`, mod 2^P, with the weights, and sends the
/// products; their masks.
pub(super) fn stream(
    channel: &mut Channel,
    Server { layer, key, weights }: Server<'_>,
    own: &[u64],
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    let mut maker = Maker::new(layer, key, worker)?;
    let mut arrivals = Arrivals::new(layer, own);
    let places: Vec<Place> = layer.packing.places().collect();
    let mut tiles = tiles(layer, &places);
    let last = tiles.next_back().ok_or_else(|| defect("a linear layer has no outputs"))?;
    // Nothing is sent before everything has arrived: both could wait for each other.
    let mut ready = Vec::new();
    for places in tiles {
        let mut tile = arrivals.tile(channel, weights, places, maker.threads)?;
        ready.extend(maker.respond(&mut tile, places)?);
    }
    let mut tile = arrivals.tile(channel, weights, last, maker.threads)?;
    let mut last = last.chunks(parallel::batch(maker.threads));
    let mut ready: VecDeque<_> = ready.into();
    let responses = std::iter::from_fn(|| {
        if ready.is_empty() {
            match maker.respond(&mut tile, last.next()?) {
                Ok(some) => ready.extend(some),
                Err(error) => return Some(Err(error)),
            }
        }
        ready.pop_front().map(Ok)
    });
    send_all(channel, layer, responses)?;
    Ok(maker.masks)
}

/// The places of each tile.
fn tiles<'a>(
    layer: &'a Layer,
    places: &'a [Place],
) -> impl DoubleEndedIterator<Item = &'a [Place]> {
    let tile = |place: &Place| layer.packing.tile_index(*place);
    places.chunk_by(move |a, b| tile(a) == tile(b))
}

fn send_all(
    channel: &mut Channel,
    layer: &Layer,
    responses: impl Iterator<Item = Result<Parts>>,
) -> Result<()> {
    send_chunks::<RESPONSES>(channel, layer.response_layouts(), responses)
}

/// Makes responses of sums, and keeps their masks.
struct Maker<'a> {
    layer: &'a Layer,
    key: &'a PublicKey,
    rng: &'a mut Random,
    threads: usize,
    masks: Zeroizing<Vec<u64>>,
}

impl<'a> Maker<'a> {
    fn new(layer: &'a Layer, key: &'a PublicKey, worker: &'a mut Worker<'_>) -> Result<Self> {
        layer.check_key(key)?;
        let masks = Zeroizing::new(vec![0; layer.outputs()]);
        Ok(Self { layer, key, rng: worker.rng, threads: worker.threads, masks })
    }

    fn respond(&mut self, tile: &mut Tile<'_>, places: &[Place]) -> Result<Vec<Parts>> {
        let Self { layer, key, rng, threads, masks } = self;
        let sum = |place: &Place| Ok((tile.result(place.block)?, *place, rng.child()));
        let sums = places.iter().map(sum).collect::<Result<_>>()?;
        let answer = |(cipher, place, mut rng): (Ciphertext, Place, Random)| {
            let (keep, to): (Vec<_>, Vec<_>) = layer.packing.outputs(place).into_iter().unzip();
            let answered = cipher.respond(key, &keep, layer.response_bits, &mut rng);
            let (response, hidden) = answered.map_err(misuse)?;
            Ok((to, vec![response.c1, response.c0], hidden))
        };
        let answers = parallel::map(*threads, sums, answer).into_iter().map(|answered| {
            let (to, parts, hidden) = answered?;
            scatter(masks, &to, &hidden);
            Ok(parts)
        });
        answers.collect()
    }
}

/// The client's ciphertexts in order, with the server's share added.
struct Arrivals<'a> {
    layer: &'a Layer,
    own: std::vec::IntoIter<Vec<u64>>,
    received: Received<INPUTS>,
}

impl<'a> Arrivals<'a> {
    fn new(layer: &'a Layer, own: &[u64]) -> Self {
        let own = layer.packing.encode_inputs(own, layer.params.degree());
        let received = Received::new(layer.input_layouts());
        Self { layer, own: own.into_iter(), received }
    }

    /// The sums of the tile that `places` share, of all its ciphertexts.
    fn tile<'w>(
        &mut self,
        channel: &mut Channel,
        weights: &'w ServerWeights,
        places: &[Place],
        threads: usize,
    ) -> Result<Tile<'w>>
    where
        'a: 'w,
    {
        let group = places.first().map_or(0, |place| place.group);
        let mut tile = weights.tile(self.layer, group, threads)?;
        for _ in 0..self.layer.packing.input_blocks() {
            tile.push(self.next(channel)?)?;
        }
        Ok(tile)
    }

    fn next(&mut self, channel: &mut Channel) -> Result<Ciphertext> {
        let own = Zeroizing::new(self.own.next().unwrap_or_default());
        let own = Some((own, self.layer.plain_bits));
        next_ciphertext(channel, &mut self.received, self.layer.params, own)
    }
}
