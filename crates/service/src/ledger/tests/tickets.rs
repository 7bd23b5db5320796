//! Inputs that are set aside, and tickets that are redeemed once.

use std::sync::Barrier;
use std::thread;

use super::*;
use crate::ledger::Reservation;

const NOON: u64 = 20_000 * DAY + 12 * 3600;

both!(
    what_is_set_aside_counts_until_it_is_redeemed_or_over,
    more_than_was_set_aside_is_charged_where_there_is_room,
    a_session_that_waits_keeps_what_was_set_aside,
    a_number_is_given_out_once,
    of_many_that_redeem_a_ticket_one_does,
    nobody_gets_over_a_budget_by_asking_everywhere_at_once,
    minutes_that_pass_between_ticket_and_session_change_nothing_but_the_minute,
);

fn id(number: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_le_bytes());
    id
}

impl Desk {
    fn reserve(&self, number: u64, inputs: u64, budget: &Budget, now: u64) -> Result<()> {
        reserve(&self.ledger, number, inputs, budget, now)
    }

    fn redeem(&self, number: u64, inputs: u64, budget: &Budget, now: u64) -> Result<Charged> {
        self.ledger.redeem(&id(number), inputs, budget, at(now))
    }
}

pub(super) fn reserve(
    ledger: &Ledger,
    number: u64,
    inputs: u64,
    budget: &Budget,
    now: u64,
) -> Result<()> {
    let (client, id) = (ward(), id(number));
    let wanted =
        Reservation { id: &id, client: &client, model: "mnist", inputs, until: at(now + 30) };
    ledger.reserve(&wanted, budget, at(now))
}

fn what_is_set_aside_counts_until_it_is_redeemed_or_over(desk: &Desk) {
    let budget = total(10);
    desk.reserve(1, 6, &budget, NOON).unwrap();
    let Err(Error::Refused(refused)) = desk.reserve(2, 5, &budget, NOON) else { panic!() };
    assert_eq!((refused.used, refused.asked), (6, 5));
    assert!(refused.wait.is_some(), "it may be free again soon");
    assert!(desk.charge(5, &budget, NOON).is_err(), "nor may a server charge it");
    desk.reserve(3, 4, &budget, NOON).unwrap();
    let charged = desk.redeem(1, 2, &budget, NOON + 1).unwrap();
    assert_eq!((charged.used, charged.left), (2, Some(8)), "the rest is free again");
    assert!(desk.reserve(4, 5, &budget, NOON + 1).is_err());
    desk.reserve(4, 4, &budget, NOON + 1).unwrap();
    // The third is over at the end of its time, and the fourth a second later.
    desk.reserve(5, 4, &budget, NOON + 30).unwrap();
    assert!(matches!(desk.redeem(3, 1, &budget, NOON + 30), Err(Error::Ticket(_))));
    desk.ledger.release(&id(5)).unwrap();
    desk.charge(8, &budget, NOON + 31).unwrap();
    let refused = desk.refused(1, &budget, NOON + 31);
    assert_eq!((refused.used, refused.wait), (10, None), "now they are used for good");
}

fn more_than_was_set_aside_is_charged_where_there_is_room(desk: &Desk) {
    let budget = total(10);
    desk.reserve(1, 1, &budget, NOON).unwrap();
    desk.reserve(2, 4, &budget, NOON).unwrap();
    assert!(matches!(desk.redeem(1, 7, &budget, NOON), Err(Error::Refused(_))));
    assert_eq!(
        desk.redeem(1, 6, &budget, NOON).unwrap().used,
        6,
        "it was not spent by the refusal"
    );
    assert!(matches!(desk.redeem(1, 1, &budget, NOON), Err(Error::Ticket(_))));
    assert_eq!(desk.redeem(2, 4, &budget, NOON).unwrap().used, 10);
}

fn a_session_that_waits_keeps_what_was_set_aside(desk: &Desk) {
    let budget = total(10);
    desk.reserve(1, 10, &budget, NOON).unwrap();
    assert!(desk.ledger.extend(&id(1), at(NOON + 90), at(NOON + 20)).unwrap());
    assert!(desk.reserve(2, 1, &budget, NOON + 60).is_err());
    assert_eq!(desk.redeem(1, 10, &budget, NOON + 60).unwrap().used, 10);
    assert!(!desk.ledger.extend(&id(1), at(NOON + 200), at(NOON + 60)).unwrap());
    assert!(!desk.ledger.extend(&id(9), at(NOON + 200), at(NOON + 60)).unwrap());
}

fn a_number_is_given_out_once(desk: &Desk) {
    let budget = Budget::default();
    desk.reserve(1, 1, &budget, NOON).unwrap();
    assert!(matches!(desk.reserve(1, 1, &budget, NOON), Err(Error::Misuse(_))));
    desk.redeem(1, 1, &budget, NOON).unwrap();
    assert!(matches!(desk.reserve(1, 1, &budget, NOON + 31), Err(Error::Misuse(_))));
    desk.ledger.release(&id(1)).unwrap();
    assert!(matches!(desk.redeem(1, 1, &budget, NOON), Err(Error::Ticket(_))), "not released");
}

/// Many connections, as of many processes, redeem the same tickets: each is charged once.
fn of_many_that_redeem_a_ticket_one_does(desk: &Desk) {
    let budget = Budget::default();
    const TICKETS: u64 = 20;
    const PARTIES: usize = 8;
    for number in 0..TICKETS {
        desk.reserve(number, 3, &budget, NOON).unwrap();
    }
    let (barrier, path) = (Barrier::new(PARTIES), desk.path());
    let won: usize = thread::scope(|scope| {
        let party = || {
            let ledger = Ledger::open(&path).unwrap();
            barrier.wait();
            let once = |number: &u64| ledger.redeem(&id(*number), 3, &budget, at(NOON)).is_ok();
            (0..TICKETS).filter(once).count()
        };
        let parties: Vec<_> = (0..PARTIES).map(|_| scope.spawn(party)).collect();
        parties.into_iter().map(|party| party.join().unwrap()).sum()
    });
    assert_eq!(won as u64, TICKETS);
    assert_eq!(desk.charge(0, &budget, NOON).unwrap().used, 3 * TICKETS);
}

/// Doors and servers that count at the same time never let anybody over a budget.
fn nobody_gets_over_a_budget_by_asking_everywhere_at_once(desk: &Desk) {
    let budget = total(50);
    const PARTIES: u64 = 8;
    let (barrier, path) = (Barrier::new(PARTIES as usize), desk.path());
    let got: u64 = thread::scope(|scope| {
        let party = |party: u64| {
            let (barrier, path) = (&barrier, &path);
            move || {
                let ledger = Ledger::open(path).unwrap();
                barrier.wait();
                let mut got = 0;
                for turn in 0..10 {
                    let number = 100 * party + turn;
                    got += match turn % 3 {
                        0 => {
                            u64::from(ledger.charge(&ward(), "mnist", 1, &budget, at(NOON)).is_ok())
                        }
                        1 if reserve(&ledger, number, 2, &budget, NOON).is_ok() => {
                            ledger.redeem(&id(number), 2, &budget, at(NOON)).unwrap();
                            2
                        }
                        2 if reserve(&ledger, number, 3, &budget, NOON).is_ok() => {
                            ledger.release(&id(number)).unwrap();
                            0
                        }
                        _ => 0,
                    };
                }
                got
            }
        };
        let parties: Vec<_> = (0..PARTIES).map(|one| scope.spawn(party(one))).collect();
        parties.into_iter().map(|party| party.join().unwrap()).sum()
    });
    let used = desk.charge(0, &budget, NOON).unwrap().used;
    assert!(got == used && used <= 50, "{got} answered, {used} counted");
}

/// Redeeming in the next minute counts there, and what is set aside is not given to another meanwhile.
fn minutes_that_pass_between_ticket_and_session_change_nothing_but_the_minute(desk: &Desk) {
    let budget = per_minute(4);
    desk.reserve(1, 4, &budget, NOON + 50).unwrap();
    assert!(desk.charge(1, &budget, NOON + 61).is_err());
    desk.redeem(1, 4, &budget, NOON + 61).unwrap();
    assert!(desk.charge(1, &budget, NOON + 62).is_err());
    desk.charge(4, &budget, NOON + 120).unwrap();
}
