//! Softmax of rows against the function in the clear.

use super::*;
use crate::testing::check;
use ring::Random;

/// A row with a few values at the top and the rest at a distance, or random ones.
fn row(rng: &mut Random, cols: usize, bits: u32, kind: usize) -> Vec<i64> {
    let quarter = 1i64 << (bits - 2);
    let random = rng.uniform(cols, bits - 1);
    match kind % 3 {
        0 => random.iter().map(|word| *word as i64 - quarter).collect(),
        1 => random.iter().map(|word| -(*word as i64 % (quarter / 4).max(1))).collect(),
        _ => {
            let (top, far) = (random[0] as usize % cols, random[1] as i64);
            let value = |at| if at <= top { quarter - 1 } else { quarter - 1 - far };
            (0..cols).map(value).collect()
        }
    }
}

#[test]
fn rows_come_out_as_in_the_clear() {
    let mut rng = Random::seeded(74);
    for (cols, bits, scale, out_bits, radix) in [
        (128, 9, 0.125, 8, Radix::Sixteen),
        (2, 5, 1.0, 4, Radix::Four),
        (5, 12, 0.02, 12, Radix::Four),
        (33, 8, 0.3, 8, Radix::Two),
        (16, 12, 0.1, 8, Radix::Sixteen),
        (128, 9, 0.125, 8, Radix::Chain),
        (3, 5, 1.0, 4, Radix::Chain),
    ] {
        let function = functions::Softmax::new(cols, bits, scale, out_bits).unwrap();
        let rows = (0..12).flat_map(|kind| row(&mut rng, cols, bits, kind));
        let values: Vec<i64> = rows.collect();
        let want: Vec<i64> = values.chunks(cols).flat_map(|row| function.clear(row)).collect();
        let ots = Softmax::new(12, &function, radix).unwrap();
        let circuits = Softmax::with_circuits(12, &function, radix).unwrap();
        assert!(circuits.cost().rounds + 10 < ots.cost().rounds);
        for plan in [ots, circuits] {
            check(&mut rng, &plan, (&values, bits), &want);
            let turns = plan.clone().in_turns().unwrap();
            assert!(radix == Radix::Chain || turns.cost().bytes() == plan.cost().bytes());
            assert!(turns.cost().rounds + 2 <= plan.cost().rounds);
            check(&mut rng, &turns, (&values, bits), &want);
            let shallow = plan.clone().shallow(radix, Distance::Far).unwrap();
            assert!(shallow.cost().rounds < turns.cost().rounds);
            check(&mut rng, &shallow, (&values, bits), &want);
            let wide = plan.to_width(out_bits + 14).unwrap();
            let [far, near] =
                [Distance::Far, Distance::Near].map(|d| wide.clone().shallow(radix, d));
            let all = [Ok(wide.clone()), wide.clone().in_turns(), far, near];
            for wide in all.map(|plan| plan.unwrap()) {
                check(&mut rng, &wide, (&values, bits), &want);
            }
            assert!(wide.in_turns().unwrap().to_width(40).is_err() == (radix == Radix::Chain));
        }
    }
}

#[test]
fn rows_below_a_bound_come_out_as_in_the_clear() {
    let mut rng = Random::seeded(75);
    for (cols, bits, scale, top) in [(197, 6, 0.114, 15), (3, 5, 0.2, 7), (16, 9, 0.015, 300)] {
        let function = functions::Softmax::below(top, cols, bits, scale, 8).unwrap();
        let moved = top + 1 - (1 << (bits - 2));
        let rows = (0..9).flat_map(|kind| row(&mut rng, cols, bits, kind));
        let values: Vec<i64> = rows.map(|x| x + moved).collect();
        let want: Vec<i64> = values.chunks(cols).flat_map(|row| function.clear(row)).collect();
        let plan = Softmax::new(9, &function, Radix::Four).unwrap();
        check(&mut rng, &plan, (&values, bits), &want);
    }
}

#[test]
fn more_values_than_there_can_be_are_refused() {
    let function = functions::Softmax::new(9, 9, 0.1, 8).unwrap();
    assert!(Softmax::new(usize::MAX, &function, Radix::Four).is_err());
}
