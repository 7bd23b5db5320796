//! Every operation on words against integers, and its AND gates.

use proptest::prelude::*;
use ring::word::{mask, signed};

use crate::{Builder, Circuit, Wire, Word};

/// From two words to the one that comes out.
type Make<'a> = &'a dyn Fn(&mut Builder, &[Wire], &[Wire]) -> Word;

/// A circuit of two words of `bits` with the output that `make` says.
#[allow(clippy::unwrap_used)]
fn circuit(
    bits: u32,
    signed: bool,
    make: impl FnOnce(&mut Builder, &[Wire], &[Wire]) -> Word,
) -> Circuit {
    let mut builder = Builder::new();
    let (a, b) = (builder.garbler(bits), builder.evaluator(bits));
    let word = make(&mut builder, &a, &b);
    builder.output(&word, signed);
    builder.finish().unwrap()
}

fn bits_of(value: u64, bits: u32) -> Vec<bool> {
    (0..bits).map(|bit| value >> bit & 1 == 1).collect()
}

fn run(circuit: &Circuit, bits: u32, a: u64, b: u64) -> i64 {
    circuit.run(&bits_of(a, bits), &bits_of(b, bits))[0]
}

proptest! {
    #[test]
    fn squares_and_products_with_public_numbers(bits in 1u32..30, more in 0u32..50, a: u64, number: u64) {
        let a = a & mask(bits);
        let number = number >> (2 + number % 60);
        let wide = (bits + more).min(60);
        let times = circuit(bits, false, |m, a, _| m.times(a, number, wide as usize));
        let wanted = a.wrapping_mul(number) & mask(wide);
        prop_assert_eq!(run(&times, bits, a, 0), wanted as i64);
        let square = circuit(bits, false, |m, a, _| m.square(a, wide as usize));
        prop_assert_eq!(run(&square, bits, a, 0) as u64, (a * a) & mask(wide));
        prop_assert!(square.and_gates() <= (bits * bits) as usize);
    }

    #[test]
    fn sums_and_comparisons(bits in 1u32..40, a: u64, b: u64, constant: i64) {
        let (a, b) = (a & mask(bits), b & mask(bits));
        let (x, y) = (signed(a, bits), signed(b, bits));
        let check = |wanted: i64, ands: Option<u32>, signed, make: fn(&mut Builder, &[Wire], &[Wire]) -> Word| {
            let circuit = circuit(bits, signed, make);
            assert_eq!(run(&circuit, bits, a, b), wanted);
            assert!(ands.is_none_or(|ands| circuit.and_gates() == ands as usize));
        };
        check(signed(a + b, bits), Some(bits - 1), true, |m, a, b| m.add(a, b));
        check(signed(a.wrapping_sub(b), bits), Some(bits - 1), true, |m, a, b| m.subtract(a, b));
        check((a < b).into(), Some(bits), false, |m, a, b| vec![m.less(a, b)]);
        check((x < y).into(), Some(bits), false, |m, a, b| vec![m.less_signed(a, b)]);
        check(x.max(y), Some(2 * bits), true, |m, a, b| m.max(a, b));
        check((a != 0).into(), Some(bits - 1), false, |m, a, _| vec![m.any(a)]);
        let with = |make: Make<'_>, signed| {
            run(&circuit(bits, signed, make), bits, a, b)
        };
        let moved = signed(a.wrapping_add(constant as u64), bits);
        prop_assert_eq!(with(&|m, a, _| m.add_constant(a, constant), true), moved);
        let least = constant as u64 & mask(bits);
        prop_assert_eq!(with(&|m, a, _| vec![m.at_least(a, least)], false), i64::from(a >= least));
        let chosen = if b & 1 == 1 { constant } else { 7 };
        let either = with(&|m, a, b| m.add_either(a, b[0], constant, 7), true);
        prop_assert_eq!(either, signed(a.wrapping_add(chosen as u64), bits));
        let chosen = with(&|m, a, b| m.mux(b[0], a, b), false);
        prop_assert_eq!(chosen, if b & 1 == 1 { a } else { b } as i64);
        let gated = with(&|m, a, b| m.gated(b[0], a), false);
        prop_assert_eq!(gated, (a * (b & 1)) as i64);
    }

    #[test]
    fn products(bits in 1u32..20, a: u64, b: u64, cut in 0u32..20, constant in 0u64..4) {
        let (a, b) = (a & mask(bits), b & mask(bits));
        let wide = 2 * bits as usize;
        let whole = circuit(bits, false, |m, a, b| m.multiply(a, b, 0, 0, wide));
        prop_assert_eq!(run(&whole, bits, a, b) as u64, a * b);
        let kept = (0..bits).flat_map(|i| (0..bits).map(move |j| (i, j))).filter(|(i, j)| i + j >= cut);
        let product = |(i, j)| (a >> i & b >> j & 1) << (i + j);
        let wanted = (kept.map(product).sum::<u64>() >> cut) + constant;
        let cut = circuit(bits, false, |m, a, b| m.multiply(a, b, cut as usize, constant, wide));
        prop_assert_eq!(run(&cut, bits, a, b) as u64, wanted & mask(2 * bits));
    }

    #[test]
    fn clamps(bits in 2u32..24, top in 1u32..24, a: u64) {
        let clamped = circuit(bits, false, |m, a, _| m.clamp(a, top as usize));
        let x = signed(a & mask(bits), bits);
        prop_assert_eq!(run(&clamped, bits, a, 0), x.clamp(0, mask(top) as i64));
        prop_assert_eq!(clamped.and_gates(), bits as usize - 1);
    }

    #[test]
    fn the_first_of_the_largest(values in prop::collection::vec(-5i64..5, 1..12)) {
        let (mut builder, bits) = (Builder::new(), 4);
        let entry = |at| (builder.garbler(bits), Builder::constant(at, 4));
        let entries = (0..values.len() as i64).map(entry).collect();
        let Some((value, at)) = builder.largest(entries) else { return Ok(()) };
        builder.output(&value, true);
        builder.output(&at, false);
        let circuit = builder.finish().map_err(|e| TestCaseError::fail(e.to_string()))?;
        let inputs: Vec<bool> = values.iter().flat_map(|v| bits_of(*v as u64, bits)).collect();
        let largest = values.iter().max().copied().unwrap_or(0);
        let at = values.iter().position(|v| *v == largest).unwrap_or(0);
        prop_assert_eq!(circuit.run(&inputs, &[]), [largest, at as i64]);
    }
}

#[test]
fn every_entry_of_every_small_table() {
    for bits in 1..=7 {
        let table: Vec<u64> = (0..1 << bits).map(|i: u64| i * i % 251).collect();
        let look = circuit(bits, false, |m, a, _| {
            let hot = m.one_hot(a);
            m.look_up(&hot, &table, 8)
        });
        assert_eq!(look.and_gates(), (1 << bits) - bits as usize - 1);
        for (at, entry) in table.iter().enumerate() {
            assert_eq!(run(&look, bits, at as u64, 0), *entry as i64);
        }
    }
}

#[test]
fn constants_and_equal_wires_make_no_gate() {
    let free = circuit(8, false, |m, a, _| {
        let [zeros, ones] = [0, -1].map(|value| Builder::constant(value, 8));
        let same = m.mux(a[3], a, a);
        let masked = m.gated(Wire::ONE, &same);
        let sum = m.add(&masked, &zeros);
        let none = m.gated(a[0], &zeros);
        let both: Word = sum.iter().zip(&ones).map(|(a, b)| m.and(*a, *b)).collect();
        let twice: Word = both.iter().map(|wire| m.and(*wire, *wire)).collect();
        let never = m.and(a[1], a[1].negated());
        assert_eq!((never, none), (Wire::ZERO, zeros));
        twice
    });
    assert_eq!(free.and_gates(), 0);
    assert_eq!(run(&free, 8, 0xa7, 0), 0xa7);
}

#[test]
fn what_no_output_needs_is_left_out_and_slots_are_reused() {
    let mut builder = Builder::new();
    let (mut a, b) = (builder.garbler(8), builder.evaluator(8));
    for _ in 0..100 {
        let unused = builder.less(&a, &b);
        builder.and(unused, a[0]);
        a = builder.add(&a, &b);
    }
    builder.output(&a, false);
    let circuit = builder.finish().unwrap();
    assert_eq!(circuit.and_gates(), 700);
    assert!(circuit.slots < 40, "{} slots", circuit.slots);
    let product: u64 = (3 + 100 * 5) % 256;
    assert_eq!(run(&circuit, 8, 3, 5) as u64, product);
}

#[test]
fn sixty_four_instances_at_once() {
    let sum = circuit(7, true, |m, a, b| m.add(a, b));
    let words = |value: fn(u64) -> u64| -> Vec<u64> {
        let bit = |bit: u32| (0..64).map(|lane| (value(lane) >> bit & 1) << lane).sum();
        (0..7).map(bit).collect()
    };
    let outputs = sum.run_many(&words(|lane| lane), &words(|lane| 3 * lane));
    for (lane, value) in outputs[0].iter().enumerate() {
        assert_eq!(*value, signed((4 * lane as u64) & 127, 7));
    }
}

#[test]
fn unusable_circuits_are_refused() {
    assert!(Builder::new().finish().is_err());
    for width in [0, 64] {
        let mut builder = Builder::new();
        let word = builder.garbler(width);
        builder.output(&word, false);
        assert!(builder.finish().is_err());
    }
}
