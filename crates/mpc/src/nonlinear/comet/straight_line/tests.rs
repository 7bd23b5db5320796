use super::*;
use crate::testing::{computed, split};
use graph::functions::smu::{Smooth, Smu};
use ring::Random;

#[test]
fn smooth_maxima_come_out_as_in_the_clear() {
    let mut rng = Random::seeded(91);
    for (bits, scale, slope, smoothness, fraction, extra) in [
        (9, 0.04, 0.0, 0.8, 0, 0),
        (8, 0.1, 0.25, 0.5, 0, 9),
        (9, 0.05, 0.0, 0.5, 2, 3),
        (12, 0.01, 0.0, 0.5, 0, 20),
    ] {
        let real = Smooth { bits, scale, slope, smoothness, fraction };
        let (newton, out_bits) = Smu::least(real).unwrap();
        let function = Smu::new(real, newton, out_bits + extra).unwrap();
        let values: Vec<i64> = (0..2 * real.offset()).collect();
        let plan = Program::new(values.len(), &function.straight_line, bits + 1, Radix::Four);
        let plan = plan.unwrap();
        let (client, server) = split(&mut rng, &values, bits + 1);
        let price = (plan.demand(), plan.cost());
        let got =
            computed(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
        let want: Vec<i64> = values.iter().map(|x| function.straight_line.clear(*x)).collect();
        assert_eq!(got, want, "{bits} {scale}");
    }
}
