//! How often a run fails, by a union bound over what its plan rounds and decrypts.

use super::*;

/// Results of the linear layers of the small network.
const RESULTS: f64 = 256.0 + 64.0 + 10.0;
/// A key of one degree, whose secret and error have a norm each.
const KEY: f64 = 2.0 / 18_446_744_073_709_551_616.0;

fn plan(rounding: Rounding, batch: u32) -> Plan {
    let model = network(&mut Random::seeded(61), rounding);
    let settings = Settings { batch: NonZeroU32::new(batch), ..Settings::default() };
    Plan::new(model.graph, settings).unwrap()
}

#[test]
fn exact_layers_fail_by_value_and_stochastic_ones_hardly_ever() {
    let failures = |plan: &Plan| -> Vec<f64> {
        let linear = plan.steps().iter().filter(|step| step.linear().is_some());
        linear.map(|step| step.failure()).collect()
    };
    let each = 2f64.powi(-66);
    let exact = plan(Rounding::Exact, 1);
    for (failure, count) in failures(&exact).into_iter().zip([256.0, 64.0, 10.0]) {
        assert!(failure > 0.0 && failure < count * each, "2^{} of {count}", failure.log2());
    }
    let stochastic = plan(Rounding::Stochastic, 1);
    let failed = failures(&stochastic);
    for (failure, count) in failed.iter().zip([256.0, 64.0]) {
        let most = count * 2f64.powi(-160);
        assert!(*failure > 0.0 && *failure < most, "2^{} of {count}", failure.log2());
    }
    // The last layer is exact whatever the others are.
    let [first, last] = [failed.first(), failed.last()].map(|failure| *failure.unwrap());
    assert!(last > first && last < 10.0 * each, "2^{}", last.log2());
    for plan in [&exact, &stochastic] {
        let sum: f64 = failures(plan).iter().sum();
        assert!((plan.failure() / (sum + KEY) - 1.0).abs() < 1e-9, "2^{}", plan.failure().log2());
    }
}

#[test]
fn a_batch_fails_at_most_as_often_as_its_inputs_do() {
    for batch in [1, 4] {
        let failure = plan(Rounding::Exact, batch).failure();
        let most = KEY + f64::from(batch) * RESULTS * 2f64.powi(-66);
        assert!(failure > 0.999 * KEY && failure < most, "{batch}: 2^{}", failure.log2());
    }
}

#[test]
fn values_that_enter_a_prime_are_counted() {
    let mut model = network(&mut Random::seeded(62), Rounding::Exact);
    model.graph.suite = "gala".into();
    let plan = Plan::new(model.graph, Settings::default()).unwrap();
    let step = plan.steps().iter().find(|step| step.name == "conv2 (enter)").unwrap();
    // 64 values of b bits fail with 2^(6 + b - 63).
    let bits = step.failure().log2() + 63.0 - 6.0;
    assert_eq!(bits, bits.round());
    assert!((2.0..=22.0).contains(&bits), "{bits}");
    let all: f64 = plan.steps().iter().map(|step| step.failure()).sum();
    assert!(all > step.failure() && plan.failure() >= all);
}

#[test]
fn reports_say_how_often_a_run_fails() {
    for rounding in [Rounding::Exact, Rounding::Stochastic] {
        let plan = plan(rounding, 1);
        let said = Report::predicted(&plan, 3).failure_bits.unwrap();
        let bits = -plan.failure().log2();
        assert!(said <= bits && bits < said + 0.1 + 1e-9, "{said} of {bits}");
        assert!(said > 57.0, "{said}");
    }
}
