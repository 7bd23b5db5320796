//! Rows of a shared matrix, each times a shared factor of its own.
//!
//! | | |
//! |---|---|
//! | In | shares of x, rows times cols, mod 2^bits, and for each row of `0 <= r < 2^(factor_bits - 1)` mod 2^factor_bits; OTs of seeds |
//! | Out | shares of `x*r` mod 2^bits |
//! | Reveals | masked choices |
//! | Security | semi-honest, given the correlations; AES in counter mode as a pseudo-random generator |
//! | Cost | per element twice the sum over i < factor_bits of bits - i bits; per row factor_bits correlations each way; 3 or 4 rounds |
//! | Paper | Rathee et al., SiRNN (S&P 2021), multiplication, section III-C; Asharov et al., correlated transfer (CCS 2013), on vectors |
//!
//! With top bits m and shares of r read as signed, `r = R_c + R_s + 2^factor_bits*m_c*m_s`.
//! Each party chooses by the bits of its own R from the other's row: bit i is worth 2^i, and
//! the top bit `2^(factor_bits-1) * (2*m - 1)` where m is the other's. A choice covers a whole
//! row: the OT is one of two seeds, and their streams mask `x` and nothing, each as wide
//! as it is needed.

use ot::one_of_n::{choices_cost, choices_layout, masked_cost, masked_layout};
use ot::{Choices, Column, Entry, Job, Masked, ReceiverPads, SenderPads};
use ring::word::{mask, signed};
use ring::{Bits, Prg, Seed};
use wire::{Channel, Cost, Error, Lanes, Result, Role, Values};
use zeroize::Zeroizing;

use crate::correlations::{Correlations, Demand};
use crate::share::Share;

/// Separates these streams from all others.
const DOMAIN: u64 = 0x726f_7773;

/// The public plan of row products.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    rows: usize,
    cols: usize,
    bits: u32,
    factor_bits: u32,
}

/// Seeds that one party holds, by digit and row.
type Seeds = Zeroizing<Vec<Vec<[u64; 2]>>>;

impl Rows {
    /// `rows` times `cols` values of `bits` (2 to 63), factors of `factor_bits` (2 to `bits`).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other sizes.
    pub(crate) fn new(rows: usize, cols: usize, bits: u32, factor_bits: u32) -> Result<Self> {
        let fits = (2..=63).contains(&bits) && (2..=bits).contains(&factor_bits);
        if !fits || rows.checked_mul(cols).is_none_or(|n| n.checked_mul(64).is_none()) {
            return Err(Error::misuse("a product of rows with these sizes"));
        }
        Ok(Self { rows, cols, bits, factor_bits })
    }

    fn seeds(&self) -> Vec<Job> {
        let job = Job { count: self.rows, choice_bits: 1, entry: Entry::Pair(64, 64) };
        vec![job; self.factor_bits as usize]
    }

    /// The messages, as OTs of single elements.
    fn answers(&self) -> Vec<Job> {
        let count = self.rows * self.cols;
        let entry = |digit| Entry::Word(self.bits - digit);
        (0..self.factor_bits).map(|i| Job { count, choice_bits: 1, entry: entry(i) }).collect()
    }

    /// OTs consumed.
    pub(crate) fn demand(&self) -> Demand {
        Demand::both(self.seeds())
    }

    /// What [`run`] costs.
    pub(crate) fn cost(&self) -> Cost {
        let (seeds, answers) = (self.seeds(), self.answers());
        let asked = choices_cost(Role::Client, &seeds).then(choices_cost(Role::Server, &seeds));
        let answered = masked_cost(Role::Server, &answers);
        asked.then(answered).then(masked_cost(Role::Client, &answers))
    }

    fn choices(&self, factor: &Share) -> Zeroizing<Vec<Bits>> {
        let bits = (0..self.factor_bits).map(|bit| Bits::of_words(factor.words(), bit));
        Zeroizing::new(bits.collect())
    }

    /// What the other party's bit `digit` is worth, of this party's x in `row`.
    fn worth(&self, digit: u32, x: u64, own_top: u64) -> u64 {
        if digit + 1 < self.factor_bits { x } else { x.wrapping_mul((2 * own_top).wrapping_sub(1)) }
    }

    /// The stream of a seed, one value for each column.
    fn stream(&self, seed: [u64; 2], digit: u32) -> Zeroizing<Vec<u64>> {
        let mut bytes = Seed([0; 16]);
        let (halves, _) = bytes.0.as_chunks_mut::<8>();
        halves.iter_mut().zip(seed).for_each(|(half, word)| *half = word.to_le_bytes());
        Zeroizing::new(Prg::new(&bytes, DOMAIN).uniform(self.cols, self.bits - digit))
    }

    /// This party's x times its own factor, read as signed.
    fn local(&self, x: &Share, factor: &Share) -> Vec<u64> {
        // With room for all: a vector that grows leaves copies behind.
        let mut products = Vec::with_capacity(x.len());
        for (row, factor) in x.words().chunks(self.cols.max(1)).zip(factor.words()) {
            let factor = signed(*factor, self.factor_bits) as u64;
            products.extend(row.iter().map(|x| x.wrapping_mul(factor)));
        }
        products
    }

    /// Masks this party's rows for the other's choices; takes the masks off `sums`.
    fn answer(&self, x: &Share, factor: &Share, seeds: [Seeds; 2], sums: &mut [u64]) -> Masked {
        let cols = self.cols.max(1);
        let [zero, one] = seeds;
        let lanes = masked_layout(&self.answers()).into_iter();
        let digits = (0..self.factor_bits).zip(zero.iter().zip(one.iter()));
        let values = digits.map(|(digit, (zero, one))| {
            let low = mask(self.bits - digit);
            let mut words = Vec::with_capacity(x.len());
            let rows = x.words().chunks(cols).zip(sums.chunks_mut(cols)).zip(factor.words());
            for (((xs, sums), factor), (zero, one)) in rows.zip(zero.iter().zip(one)) {
                let top = (factor >> (self.factor_bits - 1)) & 1;
                let masks = [zero, one].map(|seed| self.stream(*seed, digit));
                let pairs = masks[0].iter().zip(masks[1].iter());
                for ((x, sum), (zero, one)) in xs.iter().zip(sums).zip(pairs) {
                    let worth = self.worth(digit, *x, top);
                    words.push(worth.wrapping_add(*zero).wrapping_sub(*one) & low);
                    *sum = sum.wrapping_sub(zero << digit);
                }
            }
            Values::Words(words)
        });
        Lanes(lanes.zip(values.collect::<Vec<_>>()).collect())
    }

    /// Adds what was chosen to `sums`.
    fn read(&self, masked: Masked, choices: &[Bits], seeds: &Seeds, sums: &mut [u64]) {
        let cols = self.cols.max(1);
        let parts = masked.0.into_iter().map(|(_, values)| values);
        let digits = (0..self.factor_bits).zip(seeds.iter().zip(choices));
        for ((digit, (seeds, chosen)), values) in digits.zip(parts) {
            let Values::Words(words) = values else { continue };
            let rows = words.chunks(cols).zip(sums.chunks_mut(cols));
            for ((words, sums), (seed, chosen)) in rows.zip(seeds.iter().zip(chosen.masks())) {
                let stream = self.stream(*seed, digit);
                for ((word, sum), own) in words.iter().zip(sums).zip(stream.iter()) {
                    let share = own.wrapping_add(word & chosen);
                    *sum = sum.wrapping_add(share << digit);
                }
            }
        }
    }
}

/// Both seeds of every OT, the one that the receiver's bit 0 opens first.
fn ordered(pads: Vec<SenderPads>, asked: &Choices) -> [Seeds; 2] {
    let mut seeds = [Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new())];
    for (pads, (_, values)) in pads.into_iter().zip(&asked.0) {
        let Values::Planes(planes) = values else { continue };
        let columns: Vec<Vec<[u64; 2]>> = pads.into_columns().into_iter().map(pairs).collect();
        let columns = Zeroizing::new(columns);
        let flips = || planes.iter().flat_map(Bits::masks);
        let [Some(first), Some(second)] = [columns.first(), columns.get(1)] else { continue };
        let picked = |a: &[[u64; 2]], b: &[[u64; 2]]| -> Vec<[u64; 2]> {
            let both = a.iter().zip(b).zip(flips());
            both.map(|((a, b), flip)| [0, 1].map(|i| a[i] ^ ((a[i] ^ b[i]) & flip))).collect()
        };
        seeds[0].push(picked(first, second));
        seeds[1].push(picked(second, first));
    }
    seeds
}

fn pairs(mut column: Column) -> Vec<[u64; 2]> {
    let mut halves = column.words.iter_mut().map(|words| Zeroizing::new(std::mem::take(words)));
    let (first, second) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
    first.iter().zip(second.iter()).map(|(a, b)| [*a, *b]).collect()
}

/// The masked choices, and the seeds that they open.
fn choose(pads: Vec<ReceiverPads>, choices: &[Bits]) -> (Choices, Seeds) {
    let (mut asked, mut seeds) = (Vec::new(), Zeroizing::new(Vec::new()));
    for (pads, choice) in pads.into_iter().zip(choices) {
        let lane = pads.job().choice_lane();
        let (mut planes, opened) = pads.into_parts();
        planes.iter_mut().for_each(|plane| plane.xor(choice));
        asked.push((lane, Values::Planes(planes)));
        seeds.push(pairs(opened));
    }
    (Lanes(asked), seeds)
}

/// Multiplies.
///
/// # Errors
/// [`Error::Misuse`] when shares or correlations do not fit the plan, [`Error::Peer`],
/// [`Error::Transport`].
pub(crate) fn run(
    channel: &mut Channel,
    plan: &Rows,
    x: &Share,
    factor: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.rows * plan.cols, plan.bits, "product of rows")?;
    factor.check(plan.rows, plan.factor_bits, "product of rows")?;
    let client = channel.role() == Role::Client;
    let (jobs, answers) = (plan.seeds(), plan.answers());
    let choices = plan.choices(factor);
    let (ours, opened) = choose(ots.receive(&jobs)?, &choices);
    let sending = ots.send(&jobs)?;
    let mut sums = plan.local(x, factor);
    if client {
        channel.send(&ours)?;
    }
    let theirs: Choices = channel.receive(&choices_layout(&jobs))?;
    if !client {
        channel.send(&ours)?;
    }
    let answer = plan.answer(x, factor, ordered(sending, &theirs), &mut sums);
    if !client {
        channel.send(&answer)?;
    }
    let masked: Masked = channel.receive(&masked_layout(&answers))?;
    if client {
        channel.send(&answer)?;
    }
    plan.read(masked, &choices, &opened, &mut sums);
    Ok(Share::new(sums, plan.bits))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, split};
    use ring::Random;

    #[test]
    fn rows_are_multiplied_whatever_their_shares() {
        let mut rng = Random::seeded(71);
        for (rows, cols, bits, factor_bits) in
            [(9, 7, 31, 11), (40, 1, 20, 3), (1, 100, 63, 30), (64, 3, 4, 4), (65, 2, 9, 2)]
        {
            let x = rng.uniform(rows * cols, bits);
            let x: Vec<i64> = x.iter().map(|word| signed(*word, bits)).collect();
            let factors = rng.uniform(rows, factor_bits - 1);
            let factors: Vec<i64> = factors.iter().map(|word| *word as i64).collect();
            let plan = Rows::new(rows, cols, bits, factor_bits).unwrap();
            let (xs, fs) = (split(&mut rng, &x, bits), split(&mut rng, &factors, factor_bits));
            let (c, s) = both(
                &mut rng,
                &plan.demand(),
                |ch, ots| run(ch, &plan, &xs.0, &fs.0, ots),
                |ch, ots| run(ch, &plan, &xs.1, &fs.1, ots),
            );
            assert_eq!(c.cost, plan.cost());
            let got = Share::reconstruct(&c.value.unwrap(), &s.value.unwrap());
            let want = x.iter().zip(factors.iter().flat_map(|f| vec![*f; cols]));
            let want = want.map(|(x, f)| signed(x.wrapping_mul(f) as u64, bits));
            assert_eq!(got, want.collect::<Vec<_>>());
        }
    }

    #[test]
    fn other_sizes_are_refused() {
        assert!(Rows::new(1, 1, 64, 8).is_err() && Rows::new(1, 1, 8, 9).is_err());
        assert!(Rows::new(usize::MAX, 2, 8, 8).is_err());
    }
}
