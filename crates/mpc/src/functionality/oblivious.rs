//! Products of the server's weights.

use wire::{Error, Role};

use super::{Protocol, of_values};
use crate::linear::ot_matmul::{Product, Right, Weights, ask, client, known, server, without_bits};
use crate::share::Share;

const BITS: u32 = 12;
/// Places, rows, inner positions and columns; 2*3*4 values go in.
const SIDES: [usize; 4] = [2, 5, 3, 4];
const IMPORTANCE: [i64; 3] = [1, 2, -4];
const OFFSET: i64 = -1;

/// The numbers whose bits choose.
fn chosen() -> Vec<u32> {
    (0..30).map(|at| at * at / 3 % 8).collect()
}

fn weights() -> Vec<i32> {
    let weight = |chosen: u32| {
        let bits = IMPORTANCE.iter().enumerate();
        OFFSET + bits.map(|(bit, worth)| i64::from(chosen >> bit & 1) * worth).sum::<i64>()
    };
    chosen().into_iter().map(|chosen| weight(chosen) as i32).collect()
}

/// The client's share by OT, the server's in the clear.
#[allow(clippy::unwrap_used)]
pub(super) fn product() -> Protocol {
    let plan = Product::new(SIDES, BITS, &IMPORTANCE, OFFSET).unwrap();
    let ready = Weights::new(&plan, weights(), &chosen()).unwrap();
    let (demands, costs) = (plan.demands(), plan.costs());
    Protocol::new(
        "product by transfers",
        BITS,
        (demands.into_iter().sum(), costs.into_iter().flatten().collect()),
        move |channel, x, ots| {
            if x.len() != plan.inputs() {
                return Err(Error::misuse("another share"));
            }
            let x = Right::new(x.words(), BITS);
            let (by_ots, own) = match channel.role() {
                Role::Client => (
                    {
                        let asked = ask(channel, &plan, 0, None, ots)?;
                        client(channel, &plan, 0, &x, asked, 1)?
                    },
                    without_bits(&plan, &x),
                ),
                Role::Server => {
                    let asked = ask(channel, &plan, 0, Some(&ready), ots)?;
                    let by_ots = server(channel, &plan, 0, &ready, asked, 1)?;
                    (by_ots, known(&plan, &ready, &x, 1))
                }
            };
            let sums = by_ots.iter().zip(own.iter()).map(|(a, b)| a.wrapping_add(*b));
            Ok(Share::new(sums.collect(), BITS))
        },
        of_values(|values| {
            let [places, rows, inner, columns] = SIDES;
            let weights = weights();
            let result = |at: usize| {
                let (line, column) = (at / columns, at % columns);
                let term = |i: usize| {
                    let x = values[(line / rows * inner + i) * columns + column];
                    i64::from(weights[line * inner + i]) * x
                };
                (0..inner).map(term).sum()
            };
            (0..places * rows * columns).map(result).collect()
        }),
    )
    .tampered([1, 1])
}
