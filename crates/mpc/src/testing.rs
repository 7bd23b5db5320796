//! Both parties, with ideal correlations or real ones.

use ot::ideal::deal_pads;
use ot::pads::{fill_receiver, fill_sender};
use ot::{SessionId, Source, setup_both};
use ring::word::mask;
use ring::{Bits, Random};
use wire::testing::{Outcome, Tamper, run_tampered};
use wire::{Channel, Role};

use crate::pads::{Need, Pads};
use crate::share::Share;

/// Uniform `bits`-wide words.
pub(crate) fn random(rng: &mut Random, count: usize, bits: u32) -> Vec<u64> {
    rng.uniform(count, bits)
}

/// Uniform bits.
pub(crate) fn random_bits(rng: &mut Random, count: usize) -> Bits {
    (0..count).map(|_| rng.word()).collect()
}

/// Splits signed values into two shares.
pub(crate) fn split(rng: &mut Random, values: &[i64], bits: u32) -> (Share, Share) {
    let client = random(rng, values.len(), bits);
    let server = values.iter().zip(&client).map(|(v, c)| (*v as u64).wrapping_sub(*c) & mask(bits));
    let server = server.collect();
    (Share::new(client, bits), Share::new(server, bits))
}

/// Deals what `need` says to both parties.
pub(crate) fn deal_both(rng: &mut Random, need: &Need) -> (Pads, Pads) {
    let (client_sends, server_receives) = deal_pads(rng, &need.client_sends);
    let (server_sends, client_receives) = deal_pads(rng, &need.server_sends);
    (Pads::new(client_sends, client_receives), Pads::new(server_sends, server_receives))
}

/// Runs both parties with dealt transfers.
pub(crate) fn both<A: Send, B: Send>(
    rng: &mut Random,
    need: &Need,
    client: impl FnOnce(&mut Channel, Pads) -> A + Send,
    server: impl FnOnce(&mut Channel, Pads) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    both_tampered(rng, None, need, client, server)
}

/// Like [`both`], with one frame tampered with.
pub(crate) fn both_tampered<A: Send, B: Send>(
    rng: &mut Random,
    tamper: Option<(Role, usize, Tamper)>,
    need: &Need,
    client: impl FnOnce(&mut Channel, Pads) -> A + Send,
    server: impl FnOnce(&mut Channel, Pads) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    let (ours, theirs) = deal_both(rng, need);
    run_tampered(tamper, |ch| client(ch, ours), |ch| server(ch, theirs))
}

/// Runs both parties with correlations that they make themselves (base transfers,
/// then SoftSpoken), a fresh session per `seed`.
#[allow(clippy::unwrap_used)]
pub(crate) fn both_real<A: Send, B: Send>(
    seed: u64,
    need: &Need,
    client: impl FnOnce(&mut Channel, Pads) -> A + Send,
    server: impl FnOnce(&mut Channel, Pads) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    let make = move |channel: &mut Channel, rng: &mut Random| {
        let role = channel.role();
        let (mut ours, mut theirs) =
            setup_both(channel, rng, &SessionId([seed as u8; 32]), Source::SoftSpoken4).unwrap();
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        for sender in [Role::Client, Role::Server] {
            let jobs = need.sent_by(sender);
            if sender == role {
                sending = fill_sender(channel, &mut ours, jobs).unwrap();
            } else {
                receiving = fill_receiver(channel, &mut theirs, jobs).unwrap();
            }
        }
        Pads::new(sending, receiving)
    };
    wire::testing::run_pair(
        |channel| {
            let pads = make(channel, &mut Random::seeded(seed));
            client(channel, pads)
        },
        |channel| {
            let pads = make(channel, &mut Random::seeded(seed + 1));
            server(channel, pads)
        },
    )
}
