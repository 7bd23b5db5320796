//! What a machine is measured on: operations that between them use every kind of work.

use graph::{Nonlinear, Rounding};
use ot::Source;
use runtime::Settings;

use crate::operation::Operation;

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    /// What runs.
    pub(crate) operation: Operation,
    /// Where its correlations come from.
    pub(crate) settings: Settings,
}

/// All of them, the cheapest first; about half a minute on the reference machine.
pub(crate) fn workload() -> Vec<Trial> {
    let sources = [
        Source::SoftSpoken2,
        Source::SoftSpoken4,
        Source::SoftSpoken8,
        Source::Ferret,
        Source::Auto,
    ];
    let mut all = Vec::new();
    let mut add = |source: Source, operation: Operation| {
        all.push(Trial { operation, settings: Settings { ot: source, ..Settings::default() } });
    };
    for source in sources {
        add(source, relu(1 << 12, Some(2), Nonlinear::Ot));
        add(source, relu(1 << 15, Some(2), Nonlinear::Ot));
        add(source, relu(1 << 18, Some(2), Nonlinear::Ot));
    }
    for digit in [1, 3, 4] {
        add(Source::SoftSpoken2, relu(1 << 17, Some(digit), Nonlinear::Ot));
        add(Source::SoftSpoken2, relu(1 << 10, Some(digit), Nonlinear::Ot));
    }
    for digit in [5, 6, 8] {
        add(Source::SoftSpoken2, relu(1 << 15, Some(digit), Nonlinear::Ot));
    }
    add(Source::Ferret, relu(1 << 20, Some(2), Nonlinear::Ot));
    for count in [1 << 10, 1 << 15] {
        add(Source::Auto, relu(count, None, Nonlinear::Gc));
    }
    let auto = Source::Auto;
    add(
        auto,
        Operation::MaxPool {
            count: 1 << 15,
            bits: 14,
            window: 4,
            radix: None,
            nonlinear: Nonlinear::Ot,
        },
    );
    add(auto, Operation::Argmax { count: 100, bits: 16, radix: None, nonlinear: Nonlinear::Ot });
    add(
        auto,
        Operation::Gelu { rows: 32, cols: 1024, bits: 12, out_bits: 8, range: 8.0, radix: None },
    );
    add(
        auto,
        Operation::Softmax { rows: 128, cols: 64, bits: 9, out_bits: 8, range: 16.0, radix: None },
    );
    add(
        auto,
        Operation::LayerNorm {
            rows: 32,
            cols: 384,
            bits: 9,
            out_bits: 19,
            range: 32.0,
            radix: None,
        },
    );
    for (side, input, output, kernel, stride) in [
        (8, 64, 64, 3, 1),
        (16, 16, 32, 3, 1),
        (32, 16, 16, 3, 1),
        (32, 64, 64, 3, 2),
        (28, 64, 128, 1, 1),
        (28, 128, 128, 3, 1),
        (56, 32, 64, 3, 1),
        (14, 256, 256, 1, 1),
    ] {
        add(auto, conv(side, (input, output), kernel, stride, None));
    }
    for (rows, inner, cols) in [(1, 256, 128), (1, 2048, 1000), (32, 384, 384), (64, 384, 1536)] {
        let (weight_bits, activation_bits, suite) = (8, 8, None);
        let rounding = Rounding::Stochastic;
        add(
            auto,
            Operation::Matmul {
                rows,
                inner,
                cols,
                weight_bits,
                activation_bits,
                rounding,
                suite,
                folded: None,
            },
        );
    }
    for suite in ["gazelle", "gala", "falcon-ntt"] {
        add(auto, conv(16, (16, 16), 3, 1, Some((suite, 8, 8))));
        add(auto, conv(8, (64, 64), 3, 1, Some((suite, 8, 8))));
    }
    add(auto, conv(16, (16, 16), 3, 1, Some(("ufo", 3, 6))));
    add(auto, conv(16, (32, 64), 3, 1, Some(("ufo", 2, 4))));
    // Many bytes: one party encrypts while the other decrypts, which small messages do not show.
    add(auto, relu(1 << 17, None, Nonlinear::Gc));
    add(auto, conv(32, (16, 32), 3, 1, Some(("ufo", 8, 8))));
    add(auto, conv(28, (64, 64), 1, 1, Some(("ufo", 8, 8))));
    add(auto, conv(28, (128, 128), 1, 1, Some(("ufo", 8, 8))));
    add(auto, conv(16, (64, 64), 3, 1, Some(("falcon-ntt", 8, 8))));
    all
}

fn relu(count: usize, radix: Option<u32>, nonlinear: Nonlinear) -> Operation {
    Operation::Relu { count, bits: 12, out_bits: Some(20), saturate: None, radix, nonlinear }
}

fn conv(
    side: usize,
    (input, output): (usize, usize),
    kernel: usize,
    stride: usize,
    suite: Option<(&str, u32, u32)>,
) -> Operation {
    let (suite, weight_bits, activation_bits) = match suite {
        Some((suite, weight, activation)) => (Some(suite.to_owned()), weight, activation),
        None => (None, 8, 8),
    };
    let exact = suite.as_deref().is_some_and(|suite| suite != "ufo");
    Operation::Conv {
        height: side,
        width: side,
        input,
        output,
        kernel,
        stride,
        padding: kernel / 2,
        dilation: 1,
        groups: 1,
        weight_bits,
        activation_bits,
        rounding: if exact { Rounding::Exact } else { Rounding::Stochastic },
        suite,
        folded: None,
        tile: None,
        baseline: None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::session::work_by_phase;
    use pricing::{Unit, Work};

    #[test]
    fn every_kind_of_work_is_measured_but_those_of_whole_models() {
        let parts = workload()
            .into_iter()
            .flat_map(|work| work_by_phase(work.operation, work.settings).unwrap());
        let all: Work = parts.map(|(_, work)| work).sum();
        // Factors only products of shares have.
        let unseen = [Unit::Factor, Unit::Ferret18, Unit::Ferret19];
        for kernel in Unit::ALL.into_iter().filter(|kernel| !unseen.contains(kernel)) {
            assert!(all.units(kernel) > 0.0, "no {}", kernel.name());
        }
    }
}
