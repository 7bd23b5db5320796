//! The non-linear protocols next to the ideal functionality of each: a function of
//! both parties' inputs that says which values their outputs share.

mod garbled;
mod integers;
mod oblivious;
mod transformer;
mod trees;

use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::{bit, mask};
use wire::{Channel, Cost, Result, Role};

use crate::arithmetic::extend::{self, Extend, Sign};
use crate::arithmetic::mux::{self, Side, Switch};
use crate::arithmetic::reduce::{self, Reduce};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::{self, Comparison, Radix};
use crate::boolean::gmw::{self, Circuit, Gate, Partner};
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::argmax::{self, Argmax};
use crate::nonlinear::maximum::{self, Maximum, Tournament};
use crate::nonlinear::relu::{self, Relu};
use crate::open;
use crate::protocol::Protocol as _;
use crate::share::Share;

/// One party's run of a protocol.
pub(crate) type Run = Box<dyn Fn(&mut Channel, &Share, Correlations) -> Result<Share> + Sync>;
/// From both inputs (client's first) to the words that the outputs share, mod
/// 2^(the outputs' width).
pub(crate) type Ideal = Box<dyn Fn(&Share, &Share) -> Vec<u64> + Sync>;

/// A protocol on [`COUNT`] values of `bits`.
pub(crate) struct Protocol {
    pub(crate) name: &'static str,
    pub(crate) bits: u32,
    pub(crate) demand: Demand,
    pub(crate) cost: Cost,
    pub(crate) run: Run,
    pub(crate) ideal: Ideal,
    /// Frames of client and server that the ladder tampers with.
    pub(crate) frames: [usize; 2],
}

impl Protocol {
    /// A protocol of at least four frames from either party, which runs for `price`.
    fn new(
        name: &'static str,
        bits: u32,
        (demand, cost): (Demand, Cost),
        run: impl Fn(&mut Channel, &Share, Correlations) -> Result<Share> + Sync + 'static,
        ideal: Ideal,
    ) -> Self {
        Self { name, bits, demand, cost, run: Box::new(run), ideal, frames: [4, 4] }
    }

    /// Says of how many first `frames` of client and server the ladder tampers with one each.
    fn tampered(self, frames: [usize; 2]) -> Self {
        Self { frames, ..self }
    }
}

/// Values that go in.
pub(crate) const COUNT: usize = 24;

#[allow(clippy::unwrap_used)]
pub(crate) fn protocols() -> Vec<Protocol> {
    let one_way = Comparison::carry(12, Radix::Four).gates_from(Some(Role::Server));
    vec![
        relu("relu saturating", Relu::new(COUNT, 12, Some(8), 20, Radix::Four).unwrap(), 255),
        relu("relu", Relu::new(COUNT, 12, None, 12, Radix::Sixteen).unwrap(), i64::MAX),
        relu("relu on a mask", Relu::on_mask(COUNT, 12, Some(8), 20).unwrap(), 255),
        truncate("truncate", 12, Radix::Four),
        truncate("truncate, other side asking", 12, Radix::Two),
        reduce().tampered([1, 1]),
        extend(),
        max_pool(),
        argmax(),
        compare("compare", Comparison::carry(12, Radix::Four)),
        compare("compare radix 2", Comparison::carry(12, Radix::Two)),
        compare("compare radix 8", Comparison::carry(12, Radix::Eight)),
        compare("compare radix 16", Comparison::carry(12, Radix::Sixteen)),
        compare("compare by one direction", one_way),
        compare("compare by a chain", Comparison::carry(12, Radix::Chain)).tampered([1, 1]),
        compare("compare by carries", Comparison::carry(12, Radix::Ripple)),
        middle("compare with middle", Radix::Four),
        middle("compare with middle by a chain", Radix::Chain).tampered([1, 1]),
        middle("compare with middle by carries", Radix::Ripple),
        relu("relu by a chain", Relu::new(COUNT, 12, Some(8), 20, Radix::Chain).unwrap(), 255)
            .tampered([3, 3]),
        circuit("circuit, client first", Role::Client),
        circuit("circuit, server first", Role::Server),
        switch("switch, client first", Role::Client),
        switch("switch, server first", Role::Server),
        opening(),
    ]
    .into_iter()
    .chain(integers::protocols())
    .chain(garbled::protocols())
    .chain([oblivious::product()])
    .chain(transformer::protocols())
    .chain(trees::protocols())
    .collect()
}

/// An ideal functionality of the shared values alone.
fn of_values(ideal: impl Fn(&[i64]) -> Vec<i64> + Sync + 'static) -> Ideal {
    Box::new(move |client, server| {
        ideal(&Share::reconstruct(client, server)).iter().map(|v| *v as u64).collect()
    })
}

fn relu(name: &'static str, plan: Relu, cap: i64) -> Protocol {
    Protocol::new(
        name,
        12,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| relu::run(channel, &plan, x, ots),
        of_values(move |values| values.iter().map(|v| (*v).clamp(0, cap)).collect()),
    )
}

#[allow(clippy::unwrap_used)]
fn truncate(name: &'static str, drop: u32, radix: Radix) -> Protocol {
    let plan = Truncate::new(COUNT, 26, drop, 12, radix).unwrap();
    Protocol::new(
        name,
        26,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| truncate::run(channel, &plan, x, ots),
        of_values(move |values| values.iter().map(|v| v >> drop).collect()),
    )
    .tampered([3, 3])
}

#[allow(clippy::unwrap_used)]
fn reduce() -> Protocol {
    let plan = Reduce::new(COUNT, 26, 12, 12).unwrap();
    Protocol::new(
        "truncate with a message each way",
        26,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| reduce::run(channel, &plan, x, ots),
        of_values(|values| values.iter().map(|v| v >> 12).collect()),
    )
}

#[allow(clippy::unwrap_used)]
fn extend() -> Protocol {
    let plan = Extend::new(COUNT, 10, 18, Sign::Unknown, Radix::Four).unwrap();
    Protocol::new(
        "extend",
        10,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| extend::run(channel, &plan, x, ots),
        of_values(<[i64]>::to_vec),
    )
    .tampered([3, 3])
}

#[allow(clippy::unwrap_used)]
fn max_pool() -> Protocol {
    let windows: Vec<Vec<usize>> = (0..COUNT / 4).map(|w| (4 * w..4 * w + 4).collect()).collect();
    let tournament = Tournament::new(COUNT, &windows).unwrap();
    let plan = Maximum::new(tournament, 10, None, Radix::Four).unwrap();
    let largest = |window: &[i64]| window.iter().copied().max().unwrap_or_default();
    Protocol::new(
        "max pool",
        10,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| Ok(maximum::run(channel, &plan, x, None, ots)?.remove(0)),
        of_values(move |values| values.chunks(4).map(largest).collect()),
    )
}

#[allow(clippy::unwrap_used)]
fn argmax() -> Protocol {
    let plan = Argmax::new(1, COUNT, 10, Radix::Two).unwrap();
    Protocol::new(
        "argmax",
        10,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| argmax::run(channel, &plan, x, ots),
        of_values(|values| {
            let largest = values.iter().max();
            let at = values.iter().position(|value| Some(value) == largest);
            vec![at.unwrap_or_default() as i64]
        }),
    )
}

fn compare(name: &'static str, plan: Comparison) -> Protocol {
    Protocol::new(
        name,
        12,
        (plan.demand(COUNT), plan.cost(COUNT)),
        move |channel, x, ots| {
            let operands = plan.operand(channel.role(), x.words());
            Ok(Share::new(compare::run(channel, &plan, &operands, ots)?.greater.to_words(), 1))
        },
        Box::new(|client, server| sums(client, server).map(|sum| sum >> 12).collect()),
    )
    .tampered([2, 2])
}

/// Carry and zero test of the middle, side by side.
fn middle(name: &'static str, radix: Radix) -> Protocol {
    let plan = Comparison::with_middle(5, 12, radix);
    Protocol::new(
        name,
        12,
        (plan.demand(COUNT), plan.cost(COUNT)),
        move |channel, x, ots| {
            let operands = plan.operand(channel.role(), x.words());
            let found = compare::run(channel, &plan, &operands, ots)?;
            Ok(Share::new([found.greater.to_words(), found.middle_zero.to_words()].concat(), 1))
        },
        Box::new(|client, server| {
            let zero = |sum: u64| u64::from((sum & mask(12)) >> 5 == 0);
            let carries = sums(client, server).map(|sum| sum >> 12);
            carries.chain(sums(client, server).map(zero)).collect()
        }),
    )
    .tampered([2, 2])
}

fn sums<'a>(client: &'a Share, server: &'a Share) -> impl Iterator<Item = u64> + 'a {
    client.words().iter().zip(server.words()).map(|(c, s)| c + s)
}

/// `x & y & z` and `x ^ (x & (y ^ z))` of the three low bits, as xor shares.
fn circuit(name: &'static str, first: Role) -> Protocol {
    let mut plan = Circuit { wires: 3, ..Circuit::default() };
    let (xy, other, xyz) = (plan.wire(), plan.wire(), plan.wire());
    let partner = |factor, base, output| Partner { factor, base, output };
    let partners = vec![partner(vec![1], vec![], xy), partner(vec![1, 2], vec![0], other)];
    plan.push(0, Gate { operand: vec![0], partners });
    plan.push(1, Gate { operand: vec![xy], partners: vec![partner(vec![2], vec![], xyz)] });
    Protocol::new(
        name,
        3,
        (plan.demand(COUNT), plan.cost(COUNT, first)),
        move |channel, x, ots| {
            let inputs = (0..3).map(|at| Bits::of_words(x.words(), at));
            let wires = gmw::run(channel, &plan, inputs.collect(), ots, first)?;
            Ok(Share::new([wires[xyz].to_words(), wires[other].to_words()].concat(), 1))
        },
        Box::new(|client, server| {
            let clear: Vec<u64> =
                client.words().iter().zip(server.words()).map(|(c, s)| c ^ s).collect();
            let all = clear.iter().map(|word| u64::from(*word == 7));
            let other = clear.iter().map(|w| bit(*w, 0) & (1 ^ bit(*w, 1) ^ bit(*w, 2)));
            all.chain(other).collect()
        }),
    )
    .tampered([2, 2])
}

/// Each party's low two bits choose from the other's table, row `i` of which is
/// `[w, w+1, w+2, w+3]` for its word `w`; the results add up.
fn switch(name: &'static str, first: Role) -> Protocol {
    let jobs = vec![Job { count: COUNT, choice_bits: 2, entry: Entry::Word(9) }];
    let plan = Switch { to_client: jobs.clone(), to_server: jobs };
    let column = |words: &[u64], at| words.iter().map(|word| (word + at) & mask(9)).collect();
    Protocol::new(
        name,
        9,
        (plan.demand(), plan.cost(first)),
        move |channel, x, ots| {
            let side = Side {
                choices: vec![[0, 1].map(|bit| Bits::of_words(x.words(), bit)).to_vec()],
                tables: vec![Table::words((0..4).map(|at| column(x.words(), at)).collect())],
            };
            let switched = mux::run(channel, &plan, first, side, ots)?;
            Ok(switched.sum(COUNT, 9))
        },
        Box::new(|client, server| {
            let pairs = client.words().iter().zip(server.words());
            pairs.map(|(c, s)| c + (s & 3) + s + (c & 3)).collect()
        }),
    )
    .tampered([2, 2])
}

fn opening() -> Protocol {
    Protocol::new(
        "open",
        12,
        (Demand::default(), open::cost(COUNT, 12)),
        |channel, x, _| {
            let mut words = open::to_client(channel, x)?;
            words.resize(COUNT, 0);
            Ok(Share::new(words, 12))
        },
        of_values(<[i64]>::to_vec),
    )
    .tampered([0, 1])
}
