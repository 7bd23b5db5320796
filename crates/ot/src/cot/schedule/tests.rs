//! Choices of sources, and the bytes that they take.

use super::*;

/// Bytes of a phase that extends and takes in chunks.
fn bytes(source: impl Into<Sourcing>, need: usize, chunk: usize) -> u64 {
    let mut schedule = Schedule::new(source, Role::Server);
    schedule.reserve(need);
    let mut sum = 0;
    for done in (0..need).step_by(chunk) {
        let count = chunk.min(need - done);
        sum += schedule.extend(count).bytes();
        schedule.take(count);
    }
    sum
}

#[test]
fn small_needs_are_met_by_little() {
    for need in [1, 1000, 50_000] {
        let soft = bytes(Source::SoftSpoken8, need, 4096);
        assert_eq!(bytes(Source::Auto, need, 4096), soft);
    }
    for need in [150_000, 499_999] {
        assert!(bytes(Source::Auto, need, 65_536) < 305_000);
        assert!(bytes(Source::Auto, need, 65_536) < bytes(Source::SoftSpoken8, need, 65_536));
    }
}

#[test]
fn a_slower_link_sends_less() {
    let on = |megabits: u64| {
        let bandwidth = NonZeroU64::new(megabits * 1_000_000);
        bytes(Sourcing { bandwidth, ..Source::Auto.into() }, 20_000_000, 65_536)
    };
    assert_eq!(on(400), bytes(Source::Auto, 20_000_000, 65_536));
    assert!(on(10) < on(400) && on(400) < on(3000), "{} {} {}", on(10), on(400), on(3000));
    for extreme in [NonZeroU64::MIN, NonZeroU64::MAX] {
        let sourcing = Sourcing { bandwidth: Some(extreme), ..Source::Auto.into() };
        assert!(bytes(sourcing, 1_000_000, 65_536) > 0);
    }
}

#[test]
fn large_needs_cost_a_fraction_of_a_bit() {
    let need = 30_000_000;
    assert!(8 * bytes(Source::Ferret, need, 65_536) < need as u64 * 32 / 100);
    assert!(8 * bytes(Source::Ferret, 10 * need, 65_536) < 10 * need as u64 * 237 / 1000);
    assert!(8 * bytes(Source::Auto, need, 65_536) < need as u64 * 88 / 100);
}

#[test]
fn what_is_left_serves_the_next_phase() {
    let mut schedule = Schedule::new(Source::Auto, Role::Client);
    schedule.reserve(700_000);
    assert!(schedule.extend(700_000).bytes() > 0);
    schedule.take(700_000);
    schedule.reserve(200_000);
    let more = schedule.extend(200_000);
    assert!(more.server_to_client == 0 && more.client_to_server < 100_000, "{more:?}");
    schedule.take(200_000);
    assert!(schedule.available() < 1024);
}

#[test]
fn a_first_message_is_what_the_other_party_waits_for() {
    for (count, messages) in [(LONGEST, 1), (LONGEST + 1, 2)] {
        assert_eq!(softspoken::messages(count).count(), messages);
        for set in SETS {
            let trees = count.div_ceil(1 << set.depth);
            assert_eq!(ferret::messages(set, trees).count(), messages);
        }
    }
    let made =
        CorrelationCounts { soft: [9, LONGEST + 9, 0], silent: [0, 9, LONGEST, 2 * LONGEST, 1] };
    let first = CorrelationCounts { soft: [9, LONGEST, 0], silent: [0, 9, LONGEST, LONGEST, 1] };
    assert_eq!(made.first(), first);
}

#[test]
fn nothing_is_made_beyond_what_is_asked() {
    let mut schedule = Schedule::new(Source::SoftSpoken4, Role::Client);
    assert_eq!(schedule.extend(128).bytes(), 5 + 2 * 31 * 16 + 48);
    assert_eq!(schedule.extend(100), Cost::NONE);
    schedule.take(100);
    assert_eq!((schedule.available(), schedule.extend(28)), (28, Cost::NONE));
    let mut huge = Schedule::new(Source::Auto, Role::Client);
    huge.reserve(usize::MAX);
    huge.extend(1000);
    assert!(huge.available() < 3000);
}

#[test]
fn names_are_read_back() {
    for (source, name) in Source::NAMED {
        assert_eq!((name.parse::<Source>().ok(), source.to_string()), (Some(source), name.into()));
    }
    assert!("iknp".parse::<Source>().is_err());
}
