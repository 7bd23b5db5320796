//! Who runs, who waits and who is turned away.

use super::*;

const SOON: Duration = Duration::from_millis(1);

fn gate(sessions: usize, waiting: usize, memory: u64) -> Arc<Gate> {
    Gate::new(Room { sessions, waiting, memory }, sessions)
}

fn now(place: Result<Place, Full>) -> Slot {
    match place {
        Ok(Place::Now(slot)) => slot,
        _ => panic!("no slot"),
    }
}

fn later(place: Result<Place, Full>) -> Queued {
    match place {
        Ok(Place::Later(queued)) => queued,
        _ => panic!("not queued"),
    }
}

impl Queued {
    fn come(&self) -> Option<Slot> {
        match self.wait(SOON) {
            Some(Turn::Come(slot)) => Some(slot),
            _ => None,
        }
    }
}

#[test]
fn sessions_run_in_the_order_in_which_they_came() {
    let gate = gate(2, 3, 100);
    let (first, second) = (now(gate.enter("a", 1)), now(gate.enter("a", 1)));
    let waiting: Vec<Queued> = (0..3).map(|_| later(gate.enter("a", 1))).collect();
    assert_eq!(waiting.iter().map(Queued::before).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(gate.enter("a", 1).err().map(|full| full.waiting), Some(3));
    assert!(waiting[0].come().is_none());
    drop(first);
    let third = waiting[0].come().unwrap();
    assert!(waiting[1].come().is_none());
    drop((second, third));
    assert!(waiting[1].come().is_some() && waiting[2].come().is_some());
}

#[test]
fn one_that_leaves_the_queue_holds_nobody_up_and_takes_no_slot_along() {
    let gate = gate(1, 9, 100);
    let first = now(gate.enter("a", 1));
    let (second, third) = (later(gate.enter("a", 1)), later(gate.enter("a", 1)));
    drop(first);
    // The slot is second's by now, who never fetches it.
    drop(second);
    let slot = third.come().unwrap();
    assert_eq!(gate.counts(), (1, 0));
    drop((slot, third));
    assert_eq!(gate.counts(), (0, 0));
}

#[test]
fn memory_is_a_limit_of_its_own_and_what_never_fits_runs_alone() {
    let gate = gate(9, 9, 100);
    let (half, rest) = (now(gate.enter("a", 60)), later(gate.enter("a", 60)));
    let small = later(gate.enter("a", 1));
    drop(half);
    let half = rest.come().unwrap();
    let one = small.come().unwrap();
    let huge = later(gate.enter("a", 1 << 40));
    drop(half);
    assert!(huge.come().is_none());
    drop(one);
    assert!(huge.come().is_some());
}

#[test]
fn clients_take_turns() {
    let gate = gate(2, 9, 100);
    let running = [now(gate.enter("a", 1)), now(gate.enter("a", 1))];
    let many: Vec<Queued> = (0..3).map(|_| later(gate.enter("a", 1))).collect();
    let few: Vec<Queued> = (0..2).map(|_| later(gate.enter("b", 1))).collect();
    assert_eq!(few.iter().map(Queued::before).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(many.iter().map(Queued::before).collect::<Vec<_>>(), [2, 3, 4]);
    let [first, second] = running;
    drop(first);
    let other = few[0].come().unwrap();
    drop(second);
    // One of each would run then: the one that has waited longer comes first.
    let own = many[0].come().unwrap();
    drop(other);
    assert!(many[1].come().is_none());
    drop((few[1].come().unwrap(), own));
    assert!(many[1].come().is_some() && many[2].come().is_some());
}

#[test]
fn nobody_fills_the_queue_for_others() {
    let gate = gate(1, 4, 100);
    let running = now(gate.enter("a", 1));
    let many: Vec<Queued> = (0..4).map(|_| later(gate.enter("a", 1))).collect();
    assert_eq!(gate.enter("a", 1).err().map(|full| full.waiting), Some(4));
    let others = [later(gate.enter("b", 1)), later(gate.enter("b", 1))];
    for displaced in &many[2..] {
        assert!(matches!(displaced.wait(SOON), Some(Turn::Displaced(Full { waiting: 4, .. }))));
    }
    // Each has half of it now.
    assert!(gate.enter("b", 1).is_err() && gate.enter("a", 1).is_err());
    assert_eq!(later(gate.enter("c", 1)).before(), 1);
    assert_eq!(gate.counts(), (1, 3));
    drop((running, many, others));
    assert_eq!(gate.counts(), (0, 0));
}

#[test]
fn the_time_to_come_back_grows_with_the_queue() {
    let gate = gate(2, 0, 100);
    let slots: Vec<Slot> = (0..2).map(|_| now(gate.enter("a", 1))).collect();
    let full = gate.enter("a", 1).err().unwrap();
    assert_eq!((full.waiting, full.again), (0, FIRST_GUESS));
    drop(slots);
}

#[test]
fn a_server_that_stops_lets_those_in_who_wait_for_processors_alone() {
    let room = Room { sessions: 4, waiting: 9, memory: 100 };
    let gate = Gate::new(room, 1);
    let running = [now(gate.enter("a", 1)), now(gate.enter("a", 1))];
    let waiting: Vec<Queued> = (0..3).map(|_| later(gate.enter("a", 1))).collect();
    assert_eq!(gate.allowed(), 2);
    gate.let_all_run();
    assert_eq!((gate.allowed(), gate.counts()), (4, (4, 1)));
    let came: Vec<bool> = waiting.iter().map(|queued| queued.come().is_some()).collect();
    assert_eq!(came[..2], [true, true]);
    drop(running);
}
