//! Products of a layer on a mask, which the server makes while it waits for the client.
//!
//! The server reads the ciphertexts of a mask at once and multiplies them part by part: where it
//! waits for the client ([`Channel::meanwhile`]), and at the latest when it answers. What it sends
//! does not depend on when that is: a layer's randomness is its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use he::rlwe::Ciphertext;
use he::rlwe::direct::TOGETHER;
use ring::Random;
use wire::{Channel, Error, Meanwhile, Result};
use zeroize::Zeroizing;

use super::answers::{Maker, Parts, Server, send_all};
use super::layer::{INPUTS, Layer};
use super::packing::Place;
use super::product::{Kernel, ServerWeights};
use super::tile::{Factors, Tile, batch};
use crate::defect::defect;
use crate::linear::transport::{Received, SharedKeys, Worker, misuse};
use crate::parallel;

/// Multiplications of the direct kernel in a part, about: a millisecond.
const PART: usize = 1 << 22;
/// Sums of the other kernel to which a part adds.
const SUMS: usize = 16;

/// The products of one layer on a mask, on the way.
pub(super) struct Products {
    layer: Layer,
    keys: SharedKeys,
    weights: Arc<ServerWeights>,
    threads: usize,
    state: Mutex<State>,
}

struct State {
    rng: Random,
    /// For unfolding.
    unfolds: Random,
    /// Seeds and bodies of ciphertexts that are not expanded.
    arrived: VecDeque<[Vec<u64>; 2]>,
    /// Ciphertexts that are.
    came: usize,
    /// Polynomials that are not multiplied.
    polynomials: VecDeque<Ciphertext>,
    /// Places of responses that are not made, of all tiles.
    places: VecDeque<Place>,
    /// The sums of the next of them.
    tile: Option<Tile>,
    /// Responses that are not sent.
    responses: VecDeque<Parts>,
    /// The masks of the products in responses.
    masks: Zeroizing<Vec<u64>>,
    /// Why no more can be made.
    failed: Option<Error>,
}

impl Products {
    /// Reads what the client encrypted of `layer`; nothing is multiplied yet.
    pub(super) fn read(
        channel: &mut Channel,
        layer: &Layer,
        keys: SharedKeys,
        weights: Arc<ServerWeights>,
        worker: &mut Worker<'_>,
    ) -> Result<Self> {
        layer.check_keys(&keys.keys())?;
        let mut received = Received::<INPUTS>::new(layer.input_layouts());
        let mut arrived = VecDeque::with_capacity(layer.packing.inputs());
        for _ in 0..layer.packing.inputs() {
            arrived.push_back([received.next(channel)?, received.next(channel)?]);
        }
        let state = State {
            rng: worker.rng.child(),
            unfolds: worker.rng.child(),
            arrived,
            came: 0,
            polynomials: VecDeque::new(),
            places: layer.packing.places().collect(),
            tile: None,
            responses: VecDeque::with_capacity(layer.packing.responses()),
            masks: Zeroizing::new(vec![0; layer.outputs()]),
            failed: None,
        };
        let (threads, state) = (worker.threads, Mutex::new(state));
        Ok(Self { layer: layer.clone(), keys, weights, threads, state })
    }

    /// Sends all products, and makes those that are not there; returns their masks.
    pub(super) fn send(&self, channel: &mut Channel) -> Result<Zeroizing<Vec<u64>>> {
        let responses = std::iter::from_fn(|| self.response().transpose());
        send_all(channel, &self.layer, responses)?;
        Ok(std::mem::take(&mut self.state().masks))
    }

    /// The next response; none after the last.
    fn response(&self) -> Result<Option<Parts>> {
        let mut state = self.state();
        while state.responses.is_empty() && self.step(&mut state)? {}
        Ok(state.responses.pop_front())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn server(&self) -> Server<'_> {
        Server { layer: &self.layer, keys: self.keys.keys(), weights: &self.weights }
    }

    /// Does a part; returns whether there was one.
    fn step(&self, state: &mut State) -> Result<bool> {
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let done = self.next(state);
        state.failed = done.clone().err();
        done
    }

    fn next(&self, state: &mut State) -> Result<bool> {
        let Some(first) = state.places.front().copied() else { return Ok(false) };
        let of = self.server().factors();
        let mut tile = match state.tile.take() {
            Some(tile) => tile,
            None => Tile::new(of, first.group, self.threads)?,
        };
        if tile.is_due(of) {
            tile.add_some(of, self.part(of))?;
        } else if tile.is_whole(of) {
            let at = self.layer.packing.tile_index(first);
            self.respond(state, &mut tile, at)?;
            if state.places.front().is_none_or(|next| self.layer.packing.tile_index(*next) != at) {
                return Ok(true);
            }
        } else {
            tile.take(of, self.polynomial(state)?)?;
        }
        state.tile = Some(tile);
        Ok(true)
    }

    /// Sums to which a part adds a batch of ciphertexts.
    fn part(&self, of: Factors<'_>) -> usize {
        let kernel = of.weights.kernel();
        let some = match kernel {
            Kernel::Direct(plan) => PART / (batch(kernel) * TOGETHER * plan.work()).max(1),
            Kernel::Transform => SUMS,
        };
        some.max(self.threads)
    }

    /// The next responses of the tile at `at`.
    fn respond(&self, state: &mut State, tile: &mut Tile, at: usize) -> Result<()> {
        let State { rng, places, masks, responses, .. } = state;
        let most = parallel::batch(self.threads);
        let same = |place: &&Place| self.layer.packing.tile_index(**place) == at;
        let some = places.iter().take(most).take_while(same).count();
        let some: Vec<Place> = places.drain(..some).collect();
        let mut maker = Maker { server: self.server(), rng, threads: self.threads, masks };
        responses.extend(maker.respond(tile, &some)?);
        Ok(())
    }

    /// The next polynomial; as many ciphertexts as there are threads are unfolded at a time.
    fn polynomial(&self, state: &mut State) -> Result<Ciphertext> {
        let (layer, levels) = (&self.layer, self.layer.levels());
        let expand = |state: &mut State| {
            let arrived = state.arrived.pop_front();
            state.came += 1;
            layer.sent().expand(arrived.ok_or_else(short)?)
        };
        let key = match self.keys.unfold.as_deref() {
            Some(key) if levels > 0 => key,
            _ => return expand(state),
        };
        if state.polynomials.is_empty() {
            let mut jobs = Vec::new();
            for _ in 0..self.threads.max(1).min(state.arrived.len()) {
                let count = layer.packing.polynomials_of(state.came);
                jobs.push((expand(state)?, count, state.unfolds.child()));
            }
            let unfold = |(cipher, count, mut rng): (Ciphertext, usize, Random)| {
                cipher.unfold(key, levels, count, &mut rng).map_err(misuse)
            };
            for polynomials in parallel::map(self.threads, jobs, unfold) {
                state.polynomials.extend(polynomials?);
            }
        }
        state.polynomials.pop_front().ok_or_else(short)
    }
}

impl Meanwhile for Products {
    fn work(&self) -> bool {
        // An error comes again when the products are sent.
        self.step(&mut self.state()).unwrap_or(false)
    }
}

fn short() -> Error {
    defect("a layer needs more polynomials than came")
}
