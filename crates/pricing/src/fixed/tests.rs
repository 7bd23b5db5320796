//! The fixed prices beside the reference rates: another machine, so the same within a factor.

use super::{lattice, link, message, ot, slots};
use crate::{Rates, Unit, Work};

/// Reference seconds of a unit.
fn seconds(unit: Unit) -> f64 {
    Rates::reference().seconds(&Work::of(unit, 1.0))
}

/// Asserts that `fixed` lies within `factor` of `reference`, either way.
fn assert_within(factor: f64, fixed: f64, reference: f64, what: &str) {
    let ratio = fixed / reference;
    assert!((1.0 / factor..=factor).contains(&ratio), "{what}: {fixed:e} is {ratio} times it");
}

/// Nanoseconds in seconds.
fn nanoseconds(price: u64) -> f64 {
    price as f64 * 1e-9
}

const FERRET: [Unit; 5] =
    [Unit::Ferret15, Unit::Ferret16, Unit::Ferret17, Unit::Ferret18, Unit::Ferret19];

#[test]
fn correlations_and_pads_are_near_the_reference() {
    assert_within(3.5, nanoseconds(ot::SOFTSPOKEN), seconds(Unit::SoftSpoken8), "SoftSpoken");
    for (price, unit) in ot::FERRET.into_iter().zip(FERRET) {
        assert_within(2.0, nanoseconds(price), seconds(unit), unit.name());
        assert_within(2.0, nanoseconds(ot::CORRELATION), seconds(unit), unit.name());
    }
    for unit in [Unit::Entry, Unit::WideEntry] {
        assert_within(3.0, nanoseconds(ot::PAD), seconds(unit), unit.name());
    }
}

#[test]
fn relative_work_of_encryption_is_near_the_reference() {
    let direct = |price: usize| price as f64 * seconds(Unit::Direct);
    for unit in [Unit::Encrypted, Unit::Answered] {
        assert_within(1.5, direct(lattice::direct::ENCRYPTED), seconds(unit), unit.name());
    }
    let transformed = seconds(Unit::Transformed);
    assert_within(1.5, direct(lattice::direct::TRANSFORMED), transformed, "transformed");
    let pointwise = seconds(Unit::Pointwise);
    assert_within(1.5, direct(lattice::direct::POINTWISE), pointwise, "pointwise");
}

#[test]
fn relative_work_of_shared_products_is_near_the_reference() {
    // A ciphertext has two halves, each of which is transformed mod both primes.
    let transforms = |price: usize| price as f64 * seconds(Unit::Transformed) / 2.0;
    let halves = |unit: Unit| 2.0 * seconds(unit);
    let operand = halves(Unit::Transformed);
    assert_within(1.1, transforms(lattice::transform::OPERAND), operand, "operand");
    let multiplier = seconds(Unit::Transformed);
    assert_within(1.1, transforms(lattice::transform::MULTIPLIER), multiplier, "multiplier");
    let response = seconds(Unit::Answered) + halves(Unit::Transformed);
    assert_within(1.5, transforms(lattice::transform::RESPONSE), response, "response");
    let product = halves(Unit::Pointwise);
    assert_within(2.5, transforms(lattice::transform::PRODUCT), product, "product");
}

#[test]
fn slot_packed_work_is_near_the_reference() {
    // The unit is a picosecond by the estimate.
    assert_within(1.5, 1e-12, seconds(Unit::Slotted), "estimate");
    // A residue of a fresh ciphertext has about 48 bits, of which a seed replaces one half.
    let residue = 6.0 * seconds(Unit::Packed);
    assert_within(3.0, slots::FRESH_SECONDS, residue, "fresh");
    let parts = [slots::TRANSFORM_SECONDS, slots::CONVERSION_SECONDS, slots::PRODUCT_SECONDS];
    assert!(parts.is_sorted() && parts.iter().all(|part| *part < slots::FRESH_SECONDS));
}

#[test]
fn prices_of_messages_follow_from_their_links() {
    assert_eq!(link::BYTE_NANOSECONDS * link::BITS_PER_SECOND, 8 * 1_000_000_000);
    let half_a_round_trip = 20e-3 / 2.0;
    assert_within(1.01, message::ROUND_BYTES as f64, half_a_round_trip * 80e6 / 8.0, "round");
    // A byte of the link takes longer than the parties' own work on it, as on a WAN.
    assert!(nanoseconds(link::BYTE_NANOSECONDS) > seconds(Unit::Byte));
}
