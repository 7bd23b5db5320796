//! The AES kernels, written once and compiled for one block and two blocks per
//! vector, and for one block with twice the registers.

macro_rules! kernels {
    ($name:ident, $features:tt, $vector:ident) => {
        pub(super) mod $name {
            use crate::simd::Eight;
            use crate::simd::aes::{RoundKeys, Schedule};
            use crate::simd::vector::$vector::{self as vector, LANES};

            /// The number of each instance.
            const INSTANCES: Eight = [0, 1, 2, 3, 4, 5, 6, 7];
            /// Vectors of eight blocks.
            const VECTORS: usize = 8 / LANES;
            /// The round constants of AES-128.
            const CONSTANTS: [i32; 10] =
                [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

            /// The round keys of eight keys (FIPS 197, section 5.2).
            #[target_feature(enable = $features)]
            pub(crate) fn schedule(keys: &Eight, out: &mut Schedule) {
                let mut state = [vector::zero(); VECTORS];
                let (first, later) = out.split_at_mut(1);
                for at in 0..VECTORS {
                    state[at] = vector::load(keys, at);
                    vector::store(&mut first[0], at, state[at]);
                }
                for (out, constant) in later.iter_mut().zip(CONSTANTS) {
                    let constant = vector::words(constant);
                    for at in 0..VECTORS {
                        // ShiftRows does nothing to four equal words.
                        let word = vector::rotated_word(state[at]);
                        let word = vector::last_round(word, constant);
                        state[at] = vector::xor(vector::word_sums(state[at]), word);
                        vector::store(out, at, state[at]);
                    }
                }
            }

            /// See [`super::super::aes::Hasher::hash`].
            #[target_feature(enable = $features)]
            pub(crate) fn hash(
                schedule: &Schedule,
                first: usize,
                spread: u32,
                blocks: &mut [u128],
            ) {
                match spread {
                    0 => spread_hash::<0>(schedule, first, spread, blocks),
                    1 => spread_hash::<1>(schedule, first, spread, blocks),
                    2 => spread_hash::<2>(schedule, first, spread, blocks),
                    _ => spread_hash::<3>(schedule, first, spread, blocks),
                }
            }

            /// With `SPREAD = min(spread, 3)`.
            #[target_feature(enable = $features)]
            fn spread_hash<const SPREAD: u32>(
                schedule: &Schedule,
                first: usize,
                spread: u32,
                blocks: &mut [u128],
            ) {
                for (batch, eight) in blocks.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                    let first = first + ((8 * batch) >> spread);
                    let mut state = [vector::zero(); VECTORS];
                    for at in 0..VECTORS {
                        let key = vector::keys::<SPREAD>(&schedule[0], first, at);
                        state[at] = vector::xor(vector::load(eight, at), key);
                    }
                    for round in &schedule[1..10] {
                        for at in 0..VECTORS {
                            let key = vector::keys::<SPREAD>(round, first, at);
                            state[at] = vector::round(state[at], key);
                        }
                    }
                    for at in 0..VECTORS {
                        let key = vector::keys::<SPREAD>(&schedule[10], first, at);
                        let masked = vector::xor(vector::load(eight, at), key);
                        vector::store(eight, at, vector::last_round(state[at], masked));
                    }
                }
            }

            /// The labels of eight instances, their lanes added, hashed under one key: with
            /// `shift` added to what is hashed.
            #[inline]
            #[target_feature(enable = $features)]
            fn labels(
                schedule: &Schedule,
                key: usize,
                labels: &Eight,
                shift: vector::Vector,
            ) -> [vector::Vector; VECTORS] {
                let mut loaded = [shift; VECTORS];
                for at in 0..VECTORS {
                    loaded[at] = vector::load(labels, at);
                }
                hashed(schedule, key, &loaded, shift)
            }

            /// The same of labels in vectors.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn hashed(
                schedule: &Schedule,
                key: usize,
                labels: &[vector::Vector; VECTORS],
                shift: vector::Vector,
            ) -> [vector::Vector; VECTORS] {
                let mut input = [shift; VECTORS];
                for at in 0..VECTORS {
                    let label = vector::sigma(labels[at]);
                    let label = vector::xor(label, vector::load(&INSTANCES, at));
                    input[at] = vector::xor(input[at], label);
                }
                masked(schedule, key, &input)
            }

            /// `E_key(x) xor x` of eight blocks under one key.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn masked(
                schedule: &Schedule,
                key: usize,
                input: &[vector::Vector; VECTORS],
            ) -> [vector::Vector; VECTORS] {
                let mut state = [vector::zero(); VECTORS];
                let first = vector::broadcast(&schedule[0][key]);
                for at in 0..VECTORS {
                    state[at] = vector::xor(input[at], first);
                }
                for round in &schedule[1..10] {
                    let key = vector::broadcast(&round[key]);
                    for at in 0..VECTORS {
                        state[at] = vector::round(state[at], key);
                    }
                }
                let last = vector::broadcast(&schedule[10][key]);
                for at in 0..VECTORS {
                    state[at] = vector::last_round(state[at], vector::xor(input[at], last));
                }
                state
            }

            /// See [`super::super::aes::Hasher::garble`].
            #[target_feature(enable = $features)]
            pub(crate) fn garble(
                schedule: &Schedule,
                first: usize,
                delta: &u128,
                operands: [&Eight; 2],
                tables: [&mut Eight; 2],
                out: &mut Eight,
            ) {
                let ([left, right], [first_table, second_table]) = (operands, tables);
                let delta = vector::broadcast(delta);
                let shift = vector::sigma(delta);
                let a0 = labels(schedule, first, left, vector::zero());
                let a1 = labels(schedule, first, left, shift);
                let b0 = labels(schedule, first + 1, right, vector::zero());
                let b1 = labels(schedule, first + 1, right, shift);
                for at in 0..VECTORS {
                    let (a, b) = (vector::load(left, at), vector::load(right, at));
                    let (pa, pb) = (vector::colours(a), vector::colours(b));
                    let tg = vector::xor(a0[at], a1[at]);
                    let tg = vector::xor(tg, vector::and(pb, delta));
                    let both = vector::xor(b0[at], b1[at]);
                    let wg = vector::xor(a0[at], vector::and(pa, tg));
                    let we = vector::xor(b0[at], vector::and(pb, both));
                    vector::store(first_table, at, tg);
                    vector::store(second_table, at, vector::xor(both, a));
                    vector::store(out, at, vector::xor(wg, we));
                }
            }

            /// See [`super::super::aes::Hasher::evaluate`].
            #[target_feature(enable = $features)]
            pub(crate) fn evaluate(
                schedule: &Schedule,
                first: usize,
                operands: [&Eight; 2],
                tables: [&Eight; 2],
                out: &mut Eight,
            ) {
                let [left, right] = operands;
                let own = labels(schedule, first, left, vector::zero());
                let other = labels(schedule, first + 1, right, vector::zero());
                for at in 0..VECTORS {
                    let (a, b) = (vector::load(left, at), vector::load(right, at));
                    let tg = vector::load(tables[0], at);
                    let te = vector::xor(vector::load(tables[1], at), a);
                    let wg = vector::xor(own[at], vector::and(vector::colours(a), tg));
                    let we = vector::xor(other[at], vector::and(vector::colours(b), te));
                    vector::store(out, at, vector::xor(wg, we));
                }
            }

            /// See [`super::super::aes::Ciphers::fold`].
            #[target_feature(enable = $features)]
            pub(crate) fn fold(
                keys: &[RoundKeys],
                counters: &Eight,
                columns: &mut [Eight],
                sum: &mut Eight,
            ) {
                let mut total = [vector::zero(); VECTORS];
                for (i, key) in (0..1usize << columns.len()).rev().zip(keys) {
                    add_stream(key, counters, &mut total);
                    if let Some(column) = columns.get_mut(i.trailing_zeros() as usize) {
                        for at in 0..VECTORS {
                            let sum = vector::xor(vector::load(column, at), total[at]);
                            vector::store(column, at, sum);
                        }
                    }
                }
                for at in 0..VECTORS {
                    vector::store(sum, at, total[at]);
                }
            }

            /// See [`super::super::stream::Streams::write`].
            #[target_feature(enable = $features)]
            pub(crate) fn stream(
                schedule: &Schedule,
                lane: usize,
                counters: &[Eight],
                out: &mut [Eight],
            ) {
                let mut keys = [vector::zero(); 11];
                for at in 0..11 {
                    keys[at] = vector::broadcast(&schedule[at][lane]);
                }
                for (out, counters) in out.iter_mut().zip(counters) {
                    let mut state = [vector::zero(); VECTORS];
                    for at in 0..VECTORS {
                        state[at] = vector::xor(vector::load(counters, at), keys[0]);
                    }
                    for round in 1..10 {
                        for at in 0..VECTORS {
                            state[at] = vector::round(state[at], keys[round]);
                        }
                    }
                    for at in 0..VECTORS {
                        vector::store(out, at, vector::last_round(state[at], keys[10]));
                    }
                }
            }

            /// Adds the encryption of `counters` to `total`.
            #[inline]
            #[target_feature(enable = $features)]
            fn add_stream(
                keys: &RoundKeys,
                counters: &Eight,
                total: &mut [vector::Vector; VECTORS],
            ) {
                let mut state = [vector::zero(); VECTORS];
                let key = vector::broadcast(&keys[0]);
                for at in 0..VECTORS {
                    state[at] = vector::xor(vector::load(counters, at), key);
                }
                for key in &keys[1..10] {
                    let key = vector::broadcast(key);
                    for at in 0..VECTORS {
                        state[at] = vector::round(state[at], key);
                    }
                }
                let key = vector::broadcast(&keys[10]);
                for at in 0..VECTORS {
                    // The sum joins the last round key: one instruction less.
                    total[at] = vector::last_round(state[at], vector::xor(total[at], key));
                }
            }
        }
    };
}

kernels!(narrow, "avx2,aes", xmm);
kernels!(wider, "avx2,aes,avx512f,avx512vl", xmm);
kernels!(wide, "avx2,aes,vaes", ymm);
#[cfg(test)]
kernels!(paired, "avx2,aes", paired);
