//! Products of two shared matrices under coefficient-packed RLWE.
//!
//! | | |
//! |---|---|
//! | In | shares of `a` and `b` mod 2^P or wider, row-major `[batch, rows, inner]` and `[batch, inner, columns]`; or `a` known to the client |
//! | Out | stochastic: shares mod 2^out of `a*b / 2^shift`, off by less than [`noise::stochastic_error`](he::rlwe::noise::stochastic_error); exact: shares mod 2^(P+4) of `16*a*b + e`, 0 < e < 16; row-major `[batch, rows, columns]` |
//! | Reveals | to the client: phases masked by uniform R; to the server: ciphertexts |
//! | Security | semi-honest, under RLWE; the functionality is the product of the client's perturbed shares and the server's, plus noise that depends on neither factor (ENGINE section 2) |
//! | Cost | `inputs*(16 + N*K/8)` up, `responses*N*K'/8 + outputs*K'/8` down, 2 rounds ([`Layer::cost`]) |
//! | Paper | Hao, Li, Chen, Xing, Xu, Zhang, "Iron" (NeurIPS 2022), section 3.1; Lu et al., "BumbleBee" (NDSS 2025), section IV |
//!
//! P is `out + shift`. With `a = a0 + a1` and `b = b0 + b1`, client first, the client sends
//! its shares encrypted and the server answers with `(Enc(a0) + a1)*b1 + Enc(b0)*a1`, one
//! response for each block of the result; `a0*b0` the client adds in the clear before it
//! rounds. An `a` that the client knows leaves `Enc(a0)*b1`: nothing of `b0` is sent.
//!
//! The server's multipliers are its shares, uniform mod 2^P: noise is bounded for all of
//! them at their largest magnitude.
//!
//! Blocks of a left factor are few coefficients far apart. A server that holds
//! [`he::rlwe::UnfoldKey`]s takes up to 16 of them in one ciphertext and unfolds it. Since `b` comes
//! as the left factor of `b^T * a^T` then, it answers both products for themselves, and the
//! client adds them up.

mod arrivals;
pub(in crate::linear) mod clear;
mod layer;
mod plan;
mod product;
mod shape;
mod term;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;

use he::rlwe::SecretKey;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use arrivals::Arrivals;
pub use layer::Layer;
use layer::{INPUTS, Place, RESPONSES};
use product::{Part, add_at};
pub use shape::{Left, Shape};
use term::fold;

pub use crate::linear::transport::ServerKeys;
use crate::linear::transport::{Worker, rlwe, send_chunks};
use crate::share::Share;

/// Runs the client's side: encrypts its shares, decrypts the responses.
///
/// # Errors
/// [`Error::Misuse`] when shares or key do not fit the layer, [`Error::Peer`],
/// [`Error::Transport`].
pub fn client(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    a: &Share,
    b: &Share,
    worker: &mut Worker<'_>,
) -> Result<Share> {
    ask(channel, layer, key, a, b, worker)?;
    finish(channel, layer, key, a, b, worker.threads)
}

/// Encrypts and sends the client's shares, whose products [`finish`] receives later.
///
/// # Errors
/// As [`client`].
pub fn ask(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    a: &Share,
    b: &Share,
    worker: &mut Worker<'_>,
) -> Result<()> {
    check(layer, a, b)?;
    send_inputs(channel, layer, key, a.words(), b.words(), worker)
}

/// Decrypts the responses to what [`ask`] sent of the same shares; returns the client's share of the
/// results.
///
/// # Errors
/// As [`client`].
pub fn finish(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    a: &Share,
    b: &Share,
    threads: usize,
) -> Result<Share> {
    check(layer, a, b)?;
    let known = clear::products(layer.shape, a.words(), b.words());
    // The sums of all phases of each entry.
    let mut phases = Zeroizing::new(vec![0; layer.outputs()]);
    let with = (key, layer.response_bits, threads);
    let outputs = |place| layer.outputs_at(place).unzip();
    let (layouts, places) = (layer.response_layouts(), layer.places());
    rlwe::receive_phases::<RESPONSES, _>(channel, layouts, with, places, outputs, |to, opened| {
        add_at(&mut phases, to.into_iter(), opened);
    })?;
    layer.rescaling().client(&phases, layer.response_bits, &known)
}

/// Runs the server's side: multiplies by its shares, masks.
///
/// # Errors
/// [`Error::Misuse`] when shares or keys do not fit the layer, [`Error::Peer`],
/// [`Error::Transport`].
pub fn server<'k>(
    channel: &mut Channel,
    layer: &Layer,
    keys: impl Into<ServerKeys<'k>>,
    a: &Share,
    b: &Share,
    worker: &mut Worker<'_>,
) -> Result<Share> {
    answer(channel, layer, keys, a, b, worker)?.send(channel, layer)
}

/// The server's half of products whose responses wait to be sent.
pub struct Answered {
    responses: Vec<Vec<Vec<u64>>>,
    share: Share,
}

/// Reads what the client sends and multiplies it; nothing is sent before [`Answered::send`].
///
/// # Errors
/// As [`server`].
pub fn answer<'k>(
    channel: &mut Channel,
    layer: &Layer,
    keys: impl Into<ServerKeys<'k>>,
    a: &Share,
    b: &Share,
    worker: &mut Worker<'_>,
) -> Result<Answered> {
    let keys = keys.into();
    check(layer, a, b)?;
    layer.check_keys(&keys)?;
    let mut arrivals = Arrivals::new(layer);
    let mut folded = match keys.unfold {
        Some(key) if layer.levels > 0 => arrivals.folded(channel, key, a.words())?,
        _ => Vec::new(),
    };
    let mut masks = Zeroizing::new(vec![0; layer.outputs()]);
    // Nothing is sent before everything has arrived: both could wait for each other.
    let mut responses = Vec::new();
    let places: Vec<Place> = layer.places().collect();
    let mut places = places.chunk_by(|one, other| one.item == other.item);
    let items = a.words().chunks_exact(layer.shape.left());
    for own in items.zip(b.words().chunks_exact(layer.shape.right())) {
        let parts = match layer.levels {
            0 => Part::receive(channel, layer, &mut arrivals, own, worker.threads)?,
            _ => Part::unfold(layer, &mut folded, own, worker)?,
        };
        let places = places.next().unwrap_or_default().to_vec();
        responses.extend(product::respond(layer, &parts, places, keys.public, &mut masks, worker)?);
    }
    let share = layer.rescaling().server(&masks, layer.params.modulus_bits())?;
    Ok(Answered { responses, share })
}

impl Answered {
    /// Sends the responses; returns the server's share of the results.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn send(self, channel: &mut Channel, layer: &Layer) -> Result<Share> {
        let responses = self.responses.into_iter().map(Ok);
        send_chunks::<RESPONSES>(channel, layer.response_layouts(), responses)?;
        Ok(self.share)
    }
}

impl std::fmt::Debug for Answered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answered(<hidden>)")
    }
}

fn check(layer: &Layer, a: &Share, b: &Share) -> Result<()> {
    let batch = layer.shape.batch;
    let fits =
        |share: &Share, each| share.len() == batch * each && share.bits() >= layer.plain_bits();
    if fits(a, layer.shape.left()) && fits(b, layer.shape.right()) {
        return Ok(());
    }
    Err(Error::misuse("shares that do not fit their product of matrices"))
}

/// The polynomials that the client encrypts.
fn polynomials<'a>(
    layer: &'a Layer,
    a: &'a [u64],
    b: &'a [u64],
) -> Box<dyn Iterator<Item = Zeroizing<Vec<u64>>> + 'a> {
    let (bits, degree) = (layer.plain_bits(), layer.params.degree());
    let items = || a.chunks_exact(layer.shape.left()).zip(b.chunks_exact(layer.shape.right()));
    let blocks = layer.terms.iter().flat_map(move |term| {
        items().map(move |(a, b)| {
            let (left, right) = term.factors(a, b);
            let mut blocks = term.left(left, bits, degree);
            if layer.sends_right() {
                blocks.extend(term.right(right, bits, degree));
            }
            blocks
        })
    });
    if layer.levels == 0 {
        return Box::new(blocks.flatten());
    }
    let terms = layer.terms.iter().map(move |term| {
        let left = |(a, b)| term.left(term.factors(a, b).0, bits, degree);
        items().flat_map(left).collect::<Vec<_>>()
    });
    Box::new(
        terms.flat_map(|blocks| blocks.chunks(1 << layer.levels).map(fold).collect::<Vec<_>>()),
    )
}

/// Sends the blocks of the client's shares, encrypted.
fn send_inputs(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    a: &[u64],
    b: &[u64],
    worker: &mut Worker<'_>,
) -> Result<()> {
    let with = (key, layer.sent());
    let polynomials = polynomials(layer, a, b);
    rlwe::send_inputs::<INPUTS>(channel, layer.input_layouts(), with, polynomials, worker)
}
