//! The server's pools of trees, in an order of their own for each input.
//!
//! A client sees which slots of a pool its walks visit, so that every input of every run takes a
//! permutation that is uniform, independent of all others and used once. Rows of the selection's
//! matrix, thresholds and edges move with it, before any product: a test has no other number than
//! its place in that order, in the comparisons and OTs too. The matrix is therefore encoded anew
//! for each run.
//!
//! Sampling and applying a permutation reads and writes at places that it names. They are uniform
//! and independent of the model, but for the order in which places of next slots are looked up, which is
//! that of the server's own edges. Nothing of a client's has an influence on them.

use graph::NodeWeights;
use graph::ops::{Pool, Trees, Walk};
use ring::Random;
use wire::{Error, Result};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A server's pool in the model's order.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct ServerPool {
    #[zeroize(skip)]
    walk: Walk,
    #[zeroize(skip)]
    values: usize,
    /// Number of comparisons of a test.
    #[zeroize(skip)]
    comparisons: usize,
    /// For each comparison of each test its multiplier and feature.
    selected: Vec<(i64, usize)>,
    thresholds: Vec<i64>,
    words: Vec<i64>,
}

/// Pools of all inputs of a run, each in an order of its own.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Shuffled {
    /// The matrix of the selection, a row for each comparison of each test of each input.
    pub(super) matrix: Vec<i32>,
    /// What the selection adds: thresholds, negated.
    pub(super) bias: Vec<i64>,
    /// For each input the words of its pool.
    pub(super) words: Vec<Vec<u64>>,
}

impl ServerPool {
    /// Takes the pool of a model's weights, and what is added to results.
    ///
    /// # Errors
    /// [`Error::Misuse`] for weights of other sizes.
    pub(super) fn new(
        trees: &Trees,
        walk: Walk,
        weights: &NodeWeights,
    ) -> Result<(Self, Zeroizing<Vec<i64>>)> {
        let [thresholds, words, base] = trees.constants(&weights.bias).map_err(Error::misuse)?;
        let selected: Vec<_> = weights.weight.iter().map(|code| Trees::selected(*code)).collect();
        let pool = Pool::new(&walk, trees.values, words).filter(|pool| {
            let places = pool.next.iter().copied().flatten().chain(pool.roots);
            let known = places.copied().all(|place| {
                usize::try_from(place).is_ok_and(|place| place < walk.slots + walk.trees)
            });
            known && [selected.len(), thresholds.len()] == [walk.slots * trees.comparisons; 2]
        });
        pool.ok_or_else(|| Error::misuse("a pool of trees that does not fit its layer"))?;
        let [thresholds, words] = [thresholds, words].map(<[i64]>::to_vec);
        let base = Zeroizing::new(base.to_vec());
        let Trees { values, comparisons, .. } = *trees;
        Ok((Self { walk, values, comparisons, selected, thresholds, words }, base))
    }

    /// Draws an order for each of `inputs`, whose tests are of `features`; `fresh` random bytes
    /// follow each pool's words.
    ///
    /// # Errors
    /// [`Error::Misuse`] for words of other sizes.
    pub(super) fn shuffled(
        &self,
        [inputs, features, fresh]: [usize; 3],
        rng: &mut Random,
    ) -> Result<Shuffled> {
        let tests = self.selected.len();
        let mut all = Shuffled {
            matrix: vec![0; inputs * tests * features],
            bias: Vec::with_capacity(inputs * tests),
            words: Vec::with_capacity(inputs),
        };
        let rows = |input: usize| input * tests * features..(input + 1) * tests * features;
        for input in 0..inputs {
            let order = permutation(self.walk.slots, rng);
            let of_slot = |slot: &u32| {
                *slot as usize * self.comparisons..(*slot as usize + 1) * self.comparisons
            };
            let moved = || order.iter().flat_map(of_slot);
            let matrix = &mut all.matrix[rows(input)];
            for (row, from) in matrix.chunks_exact_mut(features.max(1)).zip(moved()) {
                let (times, feature) = self.selected[from];
                // Every place is written, so that none tells which feature is tested.
                for (at, place) in row.iter_mut().enumerate() {
                    *place = times as i32 * i32::from(at == feature);
                }
            }
            all.bias.extend(moved().map(|from| -self.thresholds[from]));
            let mut words = self.moved(&order)?;
            words.extend(rng.uniform(fresh, u8::BITS));
            all.words.push(words);
        }
        Ok(all)
    }

    /// The words of the pool whose slot at place p is slot `order[p]`.
    fn moved(&self, order: &[u32]) -> Result<Vec<u64>> {
        let (slots, values) = (self.walk.slots, self.values);
        let unfit = || Error::internal("a pool of other sizes");
        let pool = Pool::new(&self.walk, values, &self.words).ok_or_else(unfit)?;
        // Ends keep their places.
        let mut places = Zeroizing::new(vec![0u64; slots + self.walk.trees]);
        for (place, slot) in (0..).zip(order) {
            places[*slot as usize] = place;
        }
        for end in slots..places.len() {
            places[end] = end as u64;
        }
        let place = |slot: &i64| places[*slot as usize];
        let mut words = Vec::with_capacity(self.words.len() + u64::BITS as usize);
        for next in pool.next {
            words.extend(order.iter().map(|slot| place(&next[*slot as usize])));
        }
        for increments in pool.increments {
            let own = |slot: &u32| &increments[*slot as usize * values..][..values];
            words.extend(order.iter().flat_map(own).map(|value| *value as u64));
        }
        words.extend(pool.roots.iter().map(place));
        Ok(words)
    }
}

/// A uniform permutation of `0..count` (Fisher and Yates; Knuth, TAOCP 2, algorithm 3.4.2P): at a
/// statistical distance below `count^2 * 2^-128`.
fn permutation(count: usize, rng: &mut Random) -> Zeroizing<Vec<u32>> {
    let mut order = Zeroizing::new((0..count as u32).collect::<Vec<_>>());
    for last in (1..count).rev() {
        // The upper half of the product of 128 random bits and the number of choices.
        let (choices, random) = (last as u128 + 1, rng.block());
        let low = ((random & u128::from(u64::MAX)) * choices) >> 64;
        let at = ((random >> 64) * choices + low) >> 64;
        order.swap(last, at as usize);
    }
    order
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_are_equally_likely() {
        let (mut rng, runs) = (Random::seeded(1), 24_000);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..runs {
            *counts.entry(permutation(4, &mut rng).to_vec()).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        // Chi-square of 23 degrees of freedom: beyond 60 once in 30,000 times.
        let expected = f64::from(runs) / 24.0;
        let terms = counts.values().map(|n| (f64::from(*n) - expected).powi(2) / expected);
        assert!(terms.sum::<f64>() < 60.0);
    }

    /// A pool of one tree in 16 slots: `next` of each slot is the next one, but for the slot at
    /// which a branch leaves it.
    fn pool(depth: u32, next: [Vec<i64>; 2]) -> ServerPool {
        let walk = Walk { trees: 1, slots: 16, depth };
        let [left, right] = next;
        let words = [left, right, vec![0; 32], vec![0]].concat();
        let weights =
            NodeWeights { weight: vec![0; 16], bias: [vec![1; 16], words, vec![0]].concat() };
        let paths = graph::ops::Paths::Walk(walk);
        let trees = Trees { trees: 1, paths, values: 1, comparisons: 1 };
        ServerPool::new(&trees, walk, &weights).unwrap().0
    }

    /// Slots that clients visit, whatever the tree: every step is at a place that is uniform, and
    /// never at a place of another step.
    #[test]
    fn clients_visit_uniform_distinct_slots() {
        let end = 16;
        let line = [1, 2, 3, end].into_iter().chain([end; 12]).collect::<Vec<i64>>();
        // A balanced tree whose leaves' edges lead into a chain.
        let left = [1, 3, 3, end].into_iter().chain([end; 12]).collect();
        let right = [2, 3, 3, end].into_iter().chain([end; 12]).collect();
        let mut rng = Random::seeded(3);
        for (pool, steps) in [(pool(4, [line.clone(), line]), 4), (pool(3, [left, right]), 3)] {
            let mut visits = vec![[0u32; 16]; steps];
            let mut pairs = [0u32; 256];
            let runs = 32_000;
            for run in 0..runs {
                let all = pool.shuffled([1, 1, 16], &mut rng).unwrap();
                let words = &all.words[0];
                let moved = Pool::new(&pool.walk, 1, &words[..words.len() - 16]).unwrap();
                let mut place = moved.roots[0] as usize;
                let mut seen = Vec::new();
                for visits in &mut visits {
                    visits[place] += 1;
                    seen.push(place);
                    place = moved.next[run % 2][place] as usize;
                }
                assert_eq!(place, 16);
                pairs[16 * seen[0] + seen[1]] += 1;
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), steps);
            }
            let far = |counts: &[u32], classes: f64| {
                let expected = f64::from(runs as u32) / classes;
                let terms = counts.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected);
                terms.sum::<f64>()
            };
            // Chi-square: beyond 52 of 15 degrees of freedom, or 350 of 239, less than once in 10^5.
            assert!(visits.iter().all(|visits| far(visits, 16.0) < 52.0));
            let apart: Vec<u32> =
                (0..256).filter(|at| at / 16 != at % 16).map(|at| pairs[at]).collect();
            assert!(far(&apart, 240.0) < 350.0);
        }
    }

    #[test]
    fn every_input_has_an_order_of_its_own_of_one_pool() {
        let walk = Walk { trees: 2, slots: 64, depth: 4 };
        let words: Vec<i64> = (0..walk.words(1) as i64).map(|word| word % 66).collect();
        let slots = 0..64i64;
        let weights = NodeWeights {
            weight: slots.clone().map(|slot| 2 * (slot % 3) as i32).collect(),
            bias: slots.chain(words.iter().copied()).chain([7]).collect(),
        };
        let trees =
            Trees { trees: 2, paths: graph::ops::Paths::Walk(walk), values: 1, comparisons: 1 };
        let (pool, base) = ServerPool::new(&trees, walk, &weights).unwrap();
        assert_eq!(*base, [7]);
        let rng = &mut Random::seeded(2);
        let all = pool.shuffled([2, 3, 16], rng).unwrap();
        assert_eq!((all.matrix.len(), all.bias.len(), all.words.len()), (2 * 64 * 3, 2 * 64, 2));
        assert_ne!(all.bias[..64], all.bias[64..]);
        assert_ne!(all.words[0][walk.words(1)..], all.words[1][walk.words(1)..]);
        for (input, words) in all.words.iter().enumerate() {
            let moved = Pool::new(&walk, 1, &words[..walk.words(1)]).unwrap();
            let model = Pool::new(&walk, 1, &pool.words).unwrap();
            // Thresholds are the numbers of slots.
            let order: Vec<i64> = all.bias[64 * input..][..64].iter().map(|slot| -slot).collect();
            let back = |place: u64| order.get(place as usize).map_or(place as i64, |slot| *slot);
            for (place, slot) in order.iter().map(|slot| *slot as usize).enumerate() {
                let row = &all.matrix[(64 * input + place) * 3..][..3];
                assert_eq!(row.iter().position(|times| *times == 1), Some(slot % 3));
                for outcome in 0..2 {
                    assert_eq!(back(moved.next[outcome][place]), model.next[outcome][slot]);
                    let increment = model.increments[outcome][slot] as u64;
                    assert_eq!(moved.increments[outcome][place], increment);
                }
            }
            assert!(moved.roots.iter().map(|root| back(*root)).eq(model.roots.iter().copied()));
        }
    }
}
