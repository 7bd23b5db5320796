//! The server's products, masked, and sent while the rest of them is made.

use he::rlwe::{Ciphertext, UnfoldKey};
use ring::Random;
use std::collections::VecDeque;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::layer::{INPUTS, Layer, RESPONSES};
use super::packing::Place;
use super::product::ServerWeights;
use super::shares::scatter;
use super::tile::{Factors, Tile};
use crate::defect::defect;
use crate::linear::transport::rlwe::next_ciphertext;
use crate::linear::transport::{Received, misuse, send_chunks};
use crate::linear::transport::{ServerKeys, Worker};
use crate::parallel;

/// Segments of a response: c1 and the useful part of c0.
pub(super) type Parts = Vec<Vec<u64>>;

/// What the server multiplies with and answers with.
#[derive(Clone, Copy)]
pub(super) struct Server<'a> {
    pub(super) layer: &'a Layer,
    pub(super) keys: ServerKeys<'a>,
    pub(super) weights: &'a ServerWeights,
}

impl<'a> Server<'a> {
    pub(super) const fn factors(&self) -> Factors<'a> {
        Factors { layer: self.layer, weights: self.weights }
    }
}

/// Multiplies what the client encrypted plus `own`, mod 2^P, with the weights, and sends the
/// products; their masks.
pub(super) fn stream(
    channel: &mut Channel,
    server: Server<'_>,
    own: &[u64],
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    let Server { layer, keys, .. } = server;
    layer.check_keys(&keys)?;
    let mut masks = Zeroizing::new(vec![0; layer.outputs()]);
    let mut arrivals = Arrivals::new(layer, keys.unfold, own, worker);
    let mut maker = Maker { server, rng: worker.rng, threads: worker.threads, masks: &mut masks };
    let places: Vec<Place> = layer.packing.places().collect();
    let mut tiles = tiles(layer, &places);
    let last = tiles.next_back().ok_or_else(|| defect("a linear layer has no outputs"))?;
    // Nothing is sent before everything has arrived: both could wait for each other.
    let mut ready = Vec::new();
    for places in tiles {
        let mut tile = arrivals.tile(channel, server, places, maker.threads)?;
        ready.extend(maker.respond(&mut tile, places)?);
    }
    let mut tile = arrivals.tile(channel, server, last, maker.threads)?;
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
    Ok(masks)
}

/// The places of each tile.
pub(super) fn tiles<'a>(
    layer: &'a Layer,
    places: &'a [Place],
) -> impl DoubleEndedIterator<Item = &'a [Place]> {
    let tile = |place: &Place| layer.packing.tile_index(*place);
    places.chunk_by(move |a, b| tile(a) == tile(b))
}

/// Sends all responses of a layer.
pub(super) fn send_all(
    channel: &mut Channel,
    layer: &Layer,
    responses: impl Iterator<Item = Result<Parts>>,
) -> Result<()> {
    send_chunks::<RESPONSES>(channel, layer.response_layouts(), responses)
}

/// Makes responses of sums, and keeps their masks.
pub(super) struct Maker<'a> {
    pub(super) server: Server<'a>,
    pub(super) rng: &'a mut Random,
    pub(super) threads: usize,
    pub(super) masks: &'a mut [u64],
}

impl Maker<'_> {
    /// The responses of some places of a tile.
    pub(super) fn respond(&mut self, tile: &mut Tile, places: &[Place]) -> Result<Vec<Parts>> {
        let Self { server, rng, threads, masks } = self;
        let (layer, of, key) = (server.layer, server.factors(), server.keys.public);
        let sum = |place: &Place| Ok((tile.result(of, place.block)?, *place, rng.child()));
        let sums = places.iter().map(sum).collect::<Result<_>>()?;
        let answer = |(cipher, place, mut rng): (Ciphertext, Place, Random)| {
            let (keep, to): (Vec<_>, Vec<_>) = layer.packing.outputs(place).into_iter().unzip();
            let (bits, rng) = (layer.response_bits, &mut rng);
            let answered = match layer.covered {
                false => cipher.respond(key, &keep, bits, rng),
                true => cipher.respond_covered(key, &keep, bits, rng),
            };
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
    fn tile(
        &mut self,
        channel: &mut Channel,
        server: Server<'_>,
        places: &[Place],
        threads: usize,
    ) -> Result<Tile> {
        let group = places.first().map_or(0, |place| place.group);
        let mut tile = Tile::new(server.factors(), group, threads)?;
        for _ in 0..self.layer.packing.input_blocks() {
            tile.push(server.factors(), self.next(channel)?)?;
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
