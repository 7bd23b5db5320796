//! How much of which work the protocols of this crate do, counted in the units of [`pricing`].

use ot::{CorrelationCounts, Job};
use pricing::equivalent::WIDE_TABLE;
pub use pricing::{Unit, Work};
use wire::{Cost, Role};

use crate::correlations::Demand;

/// Returns the work of sending and receiving the messages of a step: their bytes and rounds.
pub fn messages(cost: Cost) -> Work {
    Work::of(Unit::Byte, cost.bytes() as f64).and(Unit::Round, cost.rounds as f64)
}

/// Returns the work of a non-linear step online: what it consumes and what it sends.
pub fn online(demand: &Demand, cost: Cost) -> Work {
    let gates: usize = demand.circuits.iter().map(|c| c.batch().and_gates()).sum();
    // Labels are not opened bit by bit.
    let labels: u64 = demand.circuits.iter().map(|c| c.online_cost().bytes()).sum();
    let sent = 8.0 * cost.bytes().saturating_sub(labels) as f64;
    Work::of(Unit::Consumed, ots(demand) as f64)
        .and(Unit::OnlineBit, sent)
        .and(Unit::Evaluated, gates as f64)
}

/// Returns the work of making pads and garbling circuits, without that of their correlations.
pub fn pads(demand: &Demand) -> Work {
    let circuits = demand.circuit_jobs();
    let jobs = demand.client_sends.iter().chain(&demand.server_sends).chain(&circuits);
    let (mut count, mut entries, mut wide) = (0.0, 0.0, 0.0);
    for job in jobs {
        count += job.count as f64;
        let narrow = job.entries() < WIDE_TABLE;
        *(if narrow { &mut entries } else { &mut wide }) += job.count as f64 * job.entries() as f64;
    }
    let gates: usize = demand.circuits.iter().map(|c| c.batch().and_gates()).sum();
    Work::of(Unit::RandomOt, count)
        .and(Unit::Entry, entries)
        .and(Unit::WideEntry, wide)
        .and(Unit::Garbled, gates as f64)
}

/// Returns the work of making correlations.
pub fn correlations(made: CorrelationCounts) -> Work {
    let soft = [Unit::SoftSpoken2, Unit::SoftSpoken4, Unit::SoftSpoken8];
    let silent = [Unit::Ferret15, Unit::Ferret16, Unit::Ferret17, Unit::Ferret18, Unit::Ferret19];
    let kinds = soft.into_iter().zip(made.soft).chain(silent.into_iter().zip(made.silent));
    kinds.fold(Work::none(), |sum, (kernel, count)| sum.and(kernel, count as f64))
}

fn ots(demand: &Demand) -> usize {
    let sent = |sender| demand.sent_by(sender).iter().map(|job: &Job| job.count).sum::<usize>();
    sent(Role::Client) + sent(Role::Server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_of_wide_tables_are_counted_apart() {
        let made = |choice_bits| {
            let job = Job { count: 10, choice_bits, entry: ot::Entry::Bits(1) };
            pads(&Demand { client_sends: vec![job], ..Demand::default() })
        };
        for (choice_bits, entries, wide) in [(4, 160.0, 0.0), (5, 0.0, 320.0), (8, 0.0, 2560.0)] {
            let work = made(choice_bits);
            assert!((work.units(Unit::RandomOt) - 10.0).abs() < 1e-9);
            assert!((work.units(Unit::Entry) - entries).abs() < 1e-9);
            assert!((work.units(Unit::WideEntry) - wide).abs() < 1e-9);
        }
    }

    #[test]
    #[allow(clippy::unwrap_used)]
    fn labels_beside_ots_are_not_counted_as_opened() {
        use crate::garbled::{Function, Garbled, Ring};
        let to = Ring::Power(9);
        let plan = Garbled::map(5, Ring::Power(8), 8, Function::default(), to).unwrap();
        let alone = online(&plan.demand(), plan.cost());
        assert!(alone.units(Unit::OnlineBit).abs() < 1e-9);
        let more = plan.cost().then(Cost::message(Role::Client, 100));
        let opened = more.bytes() - plan.cost().bytes();
        let both = online(&plan.demand(), more);
        assert!((both.units(Unit::OnlineBit) - 8.0 * opened as f64).abs() < 1e-9);
        assert!((both.units(Unit::Evaluated) - plan.and_gates() as f64).abs() < 1e-9);
    }

    #[test]
    fn messages_count_bytes_and_rounds() {
        let both = Work::of(Unit::Byte, 2.0) + messages(Cost::message(Role::Client, 5));
        assert!((both.units(Unit::Byte) - 12.0).abs() < 1e-9);
        assert!((both.units(Unit::Round) - 1.0).abs() < 1e-9);
    }
}
