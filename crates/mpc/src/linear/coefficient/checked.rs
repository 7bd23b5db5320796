//! Linear layers under a key to which the client has committed: its phases have tags.
//!
//! | | |
//! |---|---|
//! | In | the client's integers z with tags mod 2^(P+40) and the server's shares, mod 2^P; weights; keys |
//! | Out | the client: phases mod 2^K' with tags, and the errors of its encryptions, which are to be found small; the server: its shares mod 2^out, or mod 2^(P+t) of exact layers, and the keys of both |
//! | Reveals | ciphertexts to the server; to the client phases masked by uniform R |
//! | Security | nothing is said to hold before the check of the errors and of the key ([`crate::auth`]) |
//! | Cost | as a layer of the largest modulus of its degree ([`Layer::cost`]) |
//! | Paper | Huang, Lu, Hong, Ding, "Cheetah" (USENIX Security 2022); tags of phases: this project |
//!
//! The errors are the phases of the client's ciphertexts less `2^(K-P) * z`. Coefficients that hold no
//! value are to be small as well.
//!
//! An exact layer keeps t bits of both shares below a last place, as few as its noise allows, since each is an AND
//! gate of the circuits behind it. The client's phase is `p = v + R + n` for the noise n, all in units of `2^-t` of a last
//! place; v is a multiple of `2^t`. The server takes `-floor(R - o)` with `o = (2^t - 1)/2`, so that the sum of
//! `floor(p)` and that is `v + floor(f + n + o)` for a fraction f. Where |n| is at most o this is v to `v + 2^t - 1`, and
//! dropping t bits leaves v. Phases have as many bits below a place as their own rounding needs for that.

use gc::tagged::{ALPHA_BITS, GATE_BITS, MacKeys};
use graph::{Linear, Rounding};
use he::rlwe::noise::PER_TENSOR;
use he::rlwe::{EXACT_BITS, Fresh, Params, rescale};
use ring::word::mask;
use wire::{Channel, Error, Packed, Result};
use zeroize::Zeroizing;

use super::answers::{Maker, Parts, Server, send_all, tiles};
use super::layer::{Chosen, INPUTS, Layer, MOST_CIPHERTEXTS, RESPONSES, parameters, payload};
use super::packing::{Folding, Place};
use super::product::ServerWeights;
use super::shares::less_known;
use super::tile::Tile;
use crate::auth::{ClientKey, Keys, ServerKey, Values};
use crate::defect::defect;
use crate::linear::transport::{
    Received, ServerKeys, Worker, chunks, misuse, seed_of, send_chunks, words_of,
};
use crate::parallel;
use crate::share::Share;

/// Plans `linear`, without an addend, of `batch` inputs (at least 1) for results of `out_bits` under a key of `params`: of all packings for
/// its degree that of the fewest bytes. The larger the modulus, the farther values stand above errors, and
/// the less an error within the bound is worth.
///
/// # Errors
/// [`Error::Misuse`] for other layers, and where no packing holds the precision.
pub fn plan(linear: &Linear, out_bits: u32, batch: usize, params: Params) -> Result<Layer> {
    if linear.addend.is_some() {
        return Err(Error::misuse("tags of phases of a layer with an addend"));
    }
    let mut best: Option<(u64, Layer)> = None;
    for packing in Folding::candidates(&linear.conv, batch, params.degree(), 0) {
        if packing.inputs().max(packing.responses()) > MOST_CIPHERTEXTS {
            continue;
        }
        let weights = packing.weights_per_response();
        let least = parameters(linear, out_bits, params.degree(), weights);
        let Some(least) = least.filter(|least| least.params.within(&params)) else { continue };
        let chosen = Chosen { params, ..least };
        let layer = Layer { covered: true, ..Layer::of(linear, out_bits, packing, chosen) };
        for layer in widths(&layer) {
            let chosen = Chosen { response_bits: layer.response_bits, ..chosen };
            let bits = layer.outputs() as u64 * bits_behind(&layer);
            let bytes = payload(&layer.packing, chosen) + bits / 8;
            if best.as_ref().is_none_or(|(fewest, _)| bytes < *fewest) {
                best = Some((bytes, layer));
            }
        }
    }
    let none = || Error::misuse("no packing of a layer whose phases have tags; narrow its values");
    best.map(|(_, layer)| layer).ok_or_else(none)
}

/// Most bits of phases below a last place.
const MOST_SPARE: u32 = 12;

/// The layer with all the widths below a last place under which it is exact but for a probability of 2^-66 a
/// value, for the larger e0; itself if it does not round exactly.
fn widths(layer: &Layer) -> Vec<Layer> {
    if layer.rounding == Rounding::Stochastic {
        return vec![layer.clone()];
    }
    let spares = (EXACT_BITS..=MOST_SPARE)
        .filter(|spare| layer.plain_bits + spare <= layer.params.modulus_bits());
    let all = spares.flat_map(|spare| (1..=EXACT_BITS).map(move |below| (spare, below)));
    let of =
        |(spare, below)| Layer { response_bits: layer.plain_bits + spare, below, ..layer.clone() };
    let exact = |layer: &Layer| {
        layer.noise().rescale_error(layer.result_bits(), PER_TENSOR) <= layer.room()
    };
    all.map(of).filter(exact).collect()
}

/// Bits that a result costs behind the layer, as far as the widths below a place are concerned: corrections and tags
/// of its phase's bits, and a gate for each bit that is dropped.
fn bits_behind(layer: &Layer) -> u64 {
    let phase = u64::from(layer.response_bits);
    let tags = phase * u64::from(ALPHA_BITS) + phase * (phase + 1) / 2;
    phase + tags + GATE_BITS as u64 * u64::from(layer.below)
}

/// Encrypts the client's integers and decrypts the responses: phases mod 2^K', and the errors of each
/// ciphertext.
///
/// # Errors
/// [`Error::Misuse`] for values or keys of another layer, [`Error::Peer`], [`Error::Transport`].
pub fn client(
    ch: &mut Channel,
    layer: &Layer,
    key: &ClientKey,
    z: &Values,
    worker: &mut Worker<'_>,
) -> Result<(Values, Vec<Values>)> {
    client_with(ch, layer, key, z, worker, |_| {})
}

/// [`client`], which does something to what it encrypts before it sends that.
pub(crate) fn client_with(
    ch: &mut Channel,
    layer: &Layer,
    key: &ClientKey,
    z: &Values,
    worker: &mut Worker<'_>,
    change: impl Fn(&mut Fresh),
) -> Result<(Values, Vec<Values>)> {
    check(layer, z.len(), z.modulus())?;
    let (degree, bits) = (layer.params.degree(), layer.params.modulus_bits());
    let (mut sent, mut open) = (Vec::new(), Vec::new());
    let all: Vec<usize> = (0..degree).collect();
    for places in places(layer) {
        let placed = z.linear(|words| place(words, &places));
        let low = placed.values().iter().map(|word| *word as u64 & mask(layer.plain_bits));
        let low = Zeroizing::new(low.collect::<Vec<u64>>());
        let fresh = key.secret().encrypt(layer.params, &low, layer.plain_bits, worker.rng);
        let mut fresh = fresh.map_err(misuse)?;
        change(&mut fresh);
        sent.push(Ok(vec![words_of(&fresh.seed), fresh.body.clone()]));
        open.push((fresh, placed));
    }
    send_chunks::<INPUTS>(ch, layer.input_layouts(), sent.into_iter())?;
    // The server multiplies meanwhile.
    ch.flush()?;
    let error = |(fresh, placed): (Fresh, Values)| {
        let a = fresh.uniform_half(layer.params);
        let phases = key.phases(&a, bits, &all, &fresh.body)?;
        phases.less(&placed.raised(bits + ALPHA_BITS)?)
    };
    let errors = parallel::map(worker.threads, open, error).into_iter().collect::<Result<_>>()?;
    Ok((phases(ch, layer, key, worker.threads)?, errors))
}

/// The phases of the responses, by their outputs.
fn phases(ch: &mut Channel, layer: &Layer, key: &ClientKey, threads: usize) -> Result<Values> {
    let (bits, modulus) = (layer.response_bits, layer.response_bits + ALPHA_BITS);
    let mut values = Zeroizing::new(vec![0; layer.outputs()]);
    let mut tags = Zeroizing::new(vec![0; layer.outputs()]);
    let mut places = layer.packing.places();
    let mut open = Vec::new();
    let mut layouts = chunks(layer.response_layouts()).into_iter().peekable();
    while let Some(layout) = layouts.next() {
        let message: Packed<RESPONSES> = ch.receive(&layout)?;
        let mut parts = message.into_values();
        while let (Some(c1), Some(c0)) = (parts.next(), parts.next()) {
            let place = places.next().ok_or_else(|| defect("there are too many responses"))?;
            open.push((layer.packing.outputs(place), c1, c0));
        }
        if layouts.peek().is_some() && open.len() < parallel::batch(threads) {
            continue;
        }
        let phase = |(outputs, c1, c0): (Vec<(usize, usize)>, Vec<u64>, Vec<u64>)| {
            let (keep, to): (Vec<_>, Vec<_>) = outputs.into_iter().unzip();
            Ok((to, key.phases(&c1, bits, &keep, &c0)?))
        };
        for made in parallel::map(threads, std::mem::take(&mut open), phase) {
            let (to, phases) = made?;
            scatter(&mut values, &to, phases.values());
            scatter(&mut tags, &to, phases.tags());
        }
    }
    Ok(Values::new(values.to_vec(), tags.to_vec(), modulus))
}

/// Multiplies what the client encrypted plus `z`: the server's shares, and the keys of the phases and
/// of the errors.
///
/// # Errors
/// As [`client`].
#[allow(clippy::too_many_arguments)]
pub fn server(
    ch: &mut Channel,
    layer: &Layer,
    (key, keys): (&ServerKey, &MacKeys),
    weights: &ServerWeights,
    z: &Share,
    of_z: &Keys,
    worker: &mut Worker<'_>,
) -> Result<(Share, Keys, Vec<Keys>)> {
    check(layer, of_z.len(), of_z.modulus())?;
    if (z.len(), z.bits()) != (layer.inputs(), layer.plain_bits) {
        return Err(Error::misuse("a share that does not fit its linear layer"));
    }
    let public = ServerKeys::from(key.public());
    layer.check_keys(&public)?;
    let server = Server { layer, keys: public, weights };
    let mut own = layer.packing.encode_folded(z.words(), layer.params.degree()).into_iter();
    let mut all_places = places(layer).into_iter();
    let mut received = Received::<INPUTS>::new(layer.input_layouts());
    let (mut open, mut ready) = (Vec::new(), Vec::<Parts>::new());
    let mut masks = Zeroizing::new(vec![0; layer.outputs()]);
    let mut maker = Maker { server, rng: worker.rng, threads: worker.threads, masks: &mut masks };
    let answers: Vec<Place> = layer.packing.places().collect();
    for some in tiles(layer, &answers) {
        let group = some.first().map_or(0, |place| place.group);
        let mut tile = Tile::new(server.factors(), group, maker.threads)?;
        for _ in 0..layer.packing.input_blocks() {
            let [seed, body] = [received.next(ch)?, received.next(ch)?];
            let numbers = all_places.next().unwrap_or_default();
            let placed = of_z.linear(|words| place(words, &numbers));
            let (fresh, mut cipher) = (
                Fresh { seed: seed_of(&seed), body: body.clone() },
                layer.sent().expand([seed, body])?,
            );
            open.push((fresh, placed));
            let own =
                own.next().ok_or_else(|| defect("a layer has more ciphertexts than parts"))?;
            cipher.add_plain(&own, layer.plain_bits).map_err(misuse)?;
            tile.push(server.factors(), cipher)?;
        }
        ready.extend(maker.respond(&mut tile, some)?);
    }
    send_all(ch, layer, ready.iter().cloned().map(Ok))?;
    // The client decrypts meanwhile.
    ch.flush()?;
    let error = |open| error_keys(layer, (key, keys), open);
    let errors = parallel::map(worker.threads, open, error).into_iter().collect::<Result<_>>()?;
    let betas = phase_keys(layer, (key, keys), (&answers, &ready), worker.threads)?;
    less_known(layer, &mut masks, weights.bias(), &vec![0; layer.outputs()]);
    let share = server_share(layer, &mut masks)?;
    Ok((share, betas, errors))
}

/// The server's share from its masks.
fn server_share(layer: &Layer, masks: &mut [u64]) -> Result<Share> {
    let (modulus, bits) = (layer.params.modulus_bits(), layer.result_bits());
    if layer.rounding == Rounding::Exact {
        moved(masks, modulus, bits, layer.below);
    }
    let words = rescale::server(masks, modulus, bits).map_err(misuse)?;
    Ok(Share::new(words, bits))
}

/// Takes half of what circuits drop below a last place off masks of which the top `bits` stay.
fn moved(masks: &mut [u64], modulus: u32, bits: u32, below: u32) {
    let half = ((1 << below) - 1) << (modulus - bits - 1);
    masks.iter_mut().for_each(|word| *word = word.wrapping_sub(half) & mask(modulus));
}

/// The keys of the errors of a ciphertext.
fn error_keys(
    layer: &Layer,
    (key, keys): (&ServerKey, &MacKeys),
    (fresh, placed): (Fresh, Keys),
) -> Result<Keys> {
    let bits = layer.params.modulus_bits();
    let all: Vec<usize> = (0..layer.params.degree()).collect();
    let a = fresh.uniform_half(layer.params);
    key.phases(&a, bits, &all, (&fresh.body, keys))?.less(&placed.raised(bits + ALPHA_BITS)?)
}

/// The keys of the phases of the responses, by their outputs.
fn phase_keys(
    layer: &Layer,
    (key, keys): (&ServerKey, &MacKeys),
    (places, responses): (&[Place], &[Parts]),
    threads: usize,
) -> Result<Keys> {
    let bits = layer.response_bits;
    let mut betas = Zeroizing::new(vec![0; layer.outputs()]);
    let phase = |(place, parts): (&Place, &Parts)| {
        let [c1, c0] = parts.as_slice() else { return Err(defect("a response of other parts")) };
        let (keep, to): (Vec<_>, Vec<_>) = layer.packing.outputs(*place).into_iter().unzip();
        Ok((to, key.phases(c1, bits, &keep, (c0, keys))?))
    };
    for made in parallel::map(threads, places.iter().zip(responses).collect(), phase) {
        let (to, keys) = made?;
        scatter(&mut betas, &to, keys.betas());
    }
    Ok(Keys::new(betas.to_vec(), bits + ALPHA_BITS))
}

fn check(layer: &Layer, count: usize, modulus: u32) -> Result<()> {
    if (count, modulus) == (layer.inputs(), layer.plain_bits + ALPHA_BITS) && layer.levels() == 0 {
        return Ok(());
    }
    Err(Error::misuse("tagged values that do not fit their linear layer"))
}

/// For each input polynomial the number of the value at each coefficient, counted from 1; 0 for none.
fn places(layer: &Layer) -> Vec<Vec<usize>> {
    let numbers: Vec<u64> = (1..=layer.inputs() as u64).collect();
    let polynomials = layer.packing.encode_folded(&numbers, layer.params.degree()).into_iter();
    polynomials.map(|all| all.iter().map(|number| *number as usize).collect()).collect()
}

/// The words at their places.
fn place(words: &[u128], places: &[usize]) -> Vec<u128> {
    let at = |number: &usize| number.checked_sub(1).and_then(|at| words.get(at)).copied();
    places.iter().map(|number| at(number).unwrap_or_default()).collect()
}

fn scatter(all: &mut [u128], to: &[usize], words: &[u128]) {
    for (index, word) in to.iter().zip(words) {
        if let Some(slot) = all.get_mut(*index) {
            *slot = *word;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ring::Random;

    /// Shares with t bits below a place are exact for noise up to half of what is dropped, and not for more.
    #[test]
    fn noise_within_its_room_never_reaches_the_next_place() {
        let (modulus, plain) = (40, 12);
        let mut rng = Random::seeded(1);
        for below in 1..=EXACT_BITS {
            let bits = plain + below;
            let most = ((1i64 << below) - 1) << (modulus - bits - 1);
            let sum = |v: u64, r: u64, noise: i64| {
                let phase = (v << (modulus - plain)).wrapping_add(r).wrapping_add(noise as u64);
                let mut masks = [r];
                moved(&mut masks, modulus, bits, below);
                let ours = rescale::server(&masks, modulus, bits).unwrap()[0];
                let theirs = (phase & mask(modulus)) >> (modulus - bits);
                (ours.wrapping_add(theirs) & mask(bits)) >> below
            };
            let mut missed = false;
            for _ in 0..2000 {
                let (v, r) = (rng.word() & mask(plain), rng.word() & mask(modulus));
                for noise in [0, most, -most, (rng.word() % most as u64) as i64] {
                    assert_eq!(sum(v, r, noise), v, "{below} {noise}");
                }
                missed |= sum(v, r, most + (1 << (modulus - bits - 1))) != v;
            }
            assert!(missed);
        }
    }
}
