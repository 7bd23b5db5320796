//! The server's products, masked: sent while the rest of them is made, or held back.

use he::rlwe::{Ciphertext, PublicKey, UnfoldKey};
use ring::Random;
use std::collections::VecDeque;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::layer::{INPUTS, Layer, RESPONSES};
use super::packing::Place;
use super::product::{ServerWeights, Tile};
use super::shares::scatter;
use crate::defect::defect;
use crate::linear::transport::rlwe::next_ciphertext;
use crate::linear::transport::{Received, misuse, send_chunks};
use crate::linear::transport::{ServerKeys, Worker};
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
    pub(super) keys: ServerKeys<'a>,
    pub(super) weights: &'a ServerWeights,
}

/// Multiplies what the client encrypted plus `own`, mod 2^P, with the weights; sends nothing.
pub(super) fn hold(
    channel: &mut Channel,
    Server { layer, keys, weights }: Server<'_>,
    own: &[u64],
    worker: &mut Worker<'_>,
) -> Result<Held> {
    layer.check_keys(&keys)?;
    let mut arrivals = Arrivals::new(layer, keys.unfold, own, worker);
    let mut maker = Maker::new(layer, keys.public, worker);
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
    Server { layer, keys, weights }: Server<'_>,
    own: &[u64],
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    layer.check_keys(&keys)?;
    let mut arrivals = Arrivals::new(layer, keys.unfold, own, worker);
    let mut maker = Maker::new(layer, keys.public, worker);
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
    fn new(layer: &'a Layer, key: &'a PublicKey, worker: &'a mut Worker<'_>) -> Self {
        let masks = Zeroizing::new(vec![0; layer.outputs()]);
        Self { layer, key, rng: worker.rng, threads: worker.threads, masks }
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

/// The client's input polynomials in order, encrypted, with the server's share added.
struct Arrivals<'a> {
    layer: &'a Layer,
    own: std::vec::IntoIter<Zeroizing<Vec<u64>>>,
    received: Received<INPUTS>,
    unfolding: Option<Unfolding<'a>>,
}

/// Ciphertexts that hold several polynomials each.
struct Unfolding<'a> {
    key: &'a UnfoldKey,
    rng: Random,
    threads: usize,
    /// Ciphertexts that came.
    came: usize,
    /// Their polynomials.
    ready: VecDeque<Ciphertext>,
}

impl<'a> Arrivals<'a> {
    fn new(
        layer: &'a Layer,
        key: Option<&'a UnfoldKey>,
        own: &[u64],
        worker: &mut Worker<'_>,
    ) -> Self {
        let own = layer.packing.encode_narrow(own, layer.params.degree());
        let received = Received::new(layer.input_layouts());
        let unfolding = key.filter(|_| layer.levels() > 0).map(|key| {
            let (rng, threads) = (worker.rng.child(), worker.threads.max(1));
            Unfolding { key, rng, threads, came: 0, ready: VecDeque::new() }
        });
        Self { layer, own: own.into_iter(), received, unfolding }
    }

    /// The sums of the tile that `places` share, of all its polynomials.
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
        let (params, bits) = (self.layer.params, self.layer.plain_bits);
        let own = self.own.next().unwrap_or_default();
        let own = self.layer.packing.spread(own, params.degree());
        let Some(unfolding) = &mut self.unfolding else {
            return next_ciphertext(channel, &mut self.received, self.layer.sent(), Some(own));
        };
        let mut cipher = unfolding.next(channel, self.layer, &mut self.received)?;
        cipher.add_plain(&own, bits).map_err(misuse)?;
        Ok(cipher)
    }
}

impl Unfolding<'_> {
    /// The next polynomial; as many ciphertexts as there are threads are unfolded at a time.
    fn next(
        &mut self,
        channel: &mut Channel,
        layer: &Layer,
        received: &mut Received<INPUTS>,
    ) -> Result<Ciphertext> {
        if self.ready.is_empty() {
            let last = layer.packing.inputs().min(self.came + self.threads);
            let mut jobs = Vec::new();
            while self.came < last {
                let cipher = next_ciphertext(channel, received, layer.sent(), None)?;
                jobs.push((cipher, layer.packing.polynomials_of(self.came), self.rng.child()));
                self.came += 1;
            }
            let unfold = |(cipher, count, mut rng): (Ciphertext, usize, Random)| {
                cipher.unfold(self.key, layer.levels(), count, &mut rng).map_err(misuse)
            };
            for polynomials in parallel::map(self.threads, jobs, unfold) {
                self.ready.extend(polynomials?);
            }
        }
        self.ready.pop_front().ok_or_else(|| defect("a layer needs more polynomials than came"))
    }
}
