//! Both parties, with ideal correlations or real ones.

use ot::ideal::deal_pads;
use ot::rot::{fill_receiver, fill_sender};
use ot::{SessionId, Source, setup_both};
use ring::word::mask;
use ring::{Bits, Random};
use wire::testing::{Outcome, Tamper, run_pair, run_tampered};
use wire::{Channel, Cost, Result, Role};

use crate::correlations::{Correlations, Demand};
use crate::garbled::prepare;
use crate::protocol::Protocol;
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

/// Deals what `need` says to both parties; circuits they prepare themselves.
#[allow(clippy::unwrap_used)]
pub(crate) fn deal_both(rng: &mut Random, demand: &Demand) -> (Correlations, Correlations) {
    let (client_sends, server_receives) = deal_pads(rng, &demand.client_sends);
    let (server_sends, client_receives) = deal_pads(rng, &demand.server_sends);
    let ours = Correlations::new(client_sends, client_receives);
    let theirs = Correlations::new(server_sends, server_receives);
    if demand.circuits.is_empty() {
        return (ours, theirs);
    }
    let (sending, receiving) = deal_pads(rng, &demand.circuit_jobs());
    let ots = [Correlations::new(sending, Vec::new()), Correlations::new(Vec::new(), receiving)];
    let ([sending, receiving], mut own) = (ots, [rng.child(), rng.child()]);
    let [first, second] = &mut own;
    let (client, server) = run_pair(
        |channel| prepare(channel, &demand.circuits, sending, first).unwrap(),
        |channel| prepare(channel, &demand.circuits, receiving, second).unwrap(),
    );
    (ours.with_circuits(client.value), theirs.with_circuits(server.value))
}

/// Runs both parties with dealt OTs.
pub(crate) fn both<A: Send, B: Send>(
    rng: &mut Random,
    demand: &Demand,
    client: impl FnOnce(&mut Channel, Correlations) -> A + Send,
    server: impl FnOnce(&mut Channel, Correlations) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    both_tampered(rng, None, demand, client, server)
}

/// Both parties' shares of what `run` computes of their inputs, the client's first. `price` is
/// what the plan demands and costs, and the meter of either party counts just that.
#[allow(clippy::unwrap_used)]
pub(crate) fn shares_of<I: Sync, O: Send>(
    rng: &mut Random,
    (demand, cost): (Demand, Cost),
    [client, server]: [&I; 2],
    run: impl Fn(&mut Channel, &I, Correlations) -> Result<O> + Sync,
) -> [O; 2] {
    let (c, s) = both(rng, &demand, |ch, ots| run(ch, client, ots), |ch, ots| run(ch, server, ots));
    assert_eq!((c.cost, s.cost), (cost, cost));
    [c.value.unwrap(), s.value.unwrap()]
}

/// The signed values of which [`shares_of`] makes shares.
pub(crate) fn computed(
    rng: &mut Random,
    price: (Demand, Cost),
    inputs: [&Share; 2],
    run: impl Fn(&mut Channel, &Share, Correlations) -> Result<Share> + Sync,
) -> Vec<i64> {
    let [client, server] = shares_of(rng, price, inputs, run);
    Share::reconstruct(&client, &server)
}

/// Checks that `plan` makes `want` of shares of `values` of `bits`, for the cost that it says.
pub(crate) fn check<P: Protocol>(
    rng: &mut Random,
    plan: &P,
    (values, bits): (&[i64], u32),
    want: &[i64],
) {
    let (client, server) = split(rng, values, bits);
    let run = |ch: &mut Channel, x: &Share, ots| plan.run(ch, std::slice::from_ref(x), ots);
    let got = computed(rng, (plan.demand(), plan.cost()), [&client, &server], run);
    assert!(got == want, "{plan:?}");
}

/// Like [`both`], with one frame tampered with.
pub(crate) fn both_tampered<A: Send, B: Send>(
    rng: &mut Random,
    tamper: Option<(Role, usize, Tamper)>,
    demand: &Demand,
    client: impl FnOnce(&mut Channel, Correlations) -> A + Send,
    server: impl FnOnce(&mut Channel, Correlations) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    let (ours, theirs) = deal_both(rng, demand);
    run_tampered(tamper, |ch| client(ch, ours), |ch| server(ch, theirs))
}

/// Runs both parties with correlations that they make themselves (base OTs,
/// then SoftSpoken), a fresh session per `seed`.
#[allow(clippy::unwrap_used)]
pub(crate) fn both_real<A: Send, B: Send>(
    seed: u64,
    demand: &Demand,
    client: impl FnOnce(&mut Channel, Correlations) -> A + Send,
    server: impl FnOnce(&mut Channel, Correlations) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    let make = move |channel: &mut Channel, rng: &mut Random| {
        let role = channel.role();
        let (mut ours, mut theirs) =
            setup_both(channel, rng, &SessionId([seed as u8; 32]), Source::SoftSpoken4).unwrap();
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        for sender in [Role::Client, Role::Server] {
            let jobs = demand.sent_by(sender);
            if sender == role {
                sending = fill_sender(channel, &mut ours, jobs).unwrap();
            } else {
                receiving = fill_receiver(channel, &mut theirs, jobs).unwrap();
            }
        }
        let ots = match role {
            Role::Client => Correlations::new(
                fill_sender(channel, &mut ours, &demand.circuit_jobs()).unwrap(),
                vec![],
            ),
            Role::Server => {
                let jobs = demand.circuit_jobs();
                Correlations::new(vec![], fill_receiver(channel, &mut theirs, &jobs).unwrap())
            }
        };
        let circuits = prepare(channel, &demand.circuits, ots, rng).unwrap();
        Correlations::new(sending, receiving).with_circuits(circuits)
    };
    run_pair(
        |channel| {
            let ots = make(channel, &mut Random::seeded(seed));
            client(channel, ots)
        },
        |channel| {
            let ots = make(channel, &mut Random::seeded(seed + 1));
            server(channel, ots)
        },
    )
}
