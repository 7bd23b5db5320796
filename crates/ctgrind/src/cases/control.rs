//! Controls: kernels that leak, to see that measurements find it, and one that does not.

use std::hint::black_box;

use crate::case::Case;
use crate::run::Run;

pub(super) const CASES: &[Case] = &[
    Case::leaky("branch on a secret", branch),
    Case::leaky("address from a secret", address),
    Case::leaky("early end of a comparison", compare),
    Case::new("control", "selection by masks", select),
];

const COUNT: usize = 1 << 12;

fn branch(run: &mut Run) {
    let secrets = run.words(COUNT, 64);
    run.kernel("kernel", || {
        let mut sum = 0u64;
        for secret in &secrets {
            if secret & 1 == 1 {
                // Without this the compiler would select.
                sum = black_box(sum + secret / 3);
            }
        }
        sum
    });
}

fn address(run: &mut Run) {
    let table: Vec<u64> = (0..1 << 16).collect();
    let secrets = run.words(COUNT, 16);
    run.kernel("kernel", || secrets.iter().fold(0, |sum, at| sum ^ table[*at as usize]));
}

fn compare(run: &mut Run) {
    let secrets = run.words(COUNT, 64);
    let guess = vec![black_box(7); COUNT];
    run.kernel("kernel", || secrets == guess);
}

fn select(run: &mut Run) {
    let secrets = run.words(COUNT, 64);
    run.kernel("kernel", || {
        secrets.iter().fold(0u64, |sum, secret| sum ^ (secret & (secret & 1).wrapping_neg()))
    });
}
