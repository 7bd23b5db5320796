//! Rows of a shared matrix, each times a shared factor of its own.
//!
//! | | |
//! |---|---|
//! | In | shares of x, rows times cols, mod 2^bits, and for each row of `0 <= r < 2^(factor_bits - 1)` mod 2^factor_bits; OTs of seeds |
//! | Out | shares of `x*r` mod 2^bits |
//! | Reveals | masked choices and masked rows |
//! | Security | semi-honest, given the correlations; AES in counter mode as a pseudo-random generator |
//! | Cost | per element twice the sum over the digits of r of bits - shift bits; per row 256 bits for each level of a digit but the first and factor_bits correlations, each way; 2 rounds |
//! | Paper | Rathee et al., SiRNN (S&P 2021), multiplication, section III-C; Roy, SoftSpokenOT (CRYPTO 2022), vector oblivious linear evaluation from all seeds but one, section 3 |
//!
//! With top bits m and shares of r read as signed, `r = R_c + R_s + 2^factor_bits*m_c*m_s`.
//! Each party chooses by the digits of its own R from the other's row y: a digit is worth
//! `digit*2^shift` times x, and the top bit `2^(factor_bits-1) * (2*m - 1)` times x where m is the
//! other's.
//!
//! For a digit D of k bits the other party has 2^k seeds, and the chooser has all but number D
//! (`puncture.rs`). Of their streams `G_i` the one knows `u = sum G_i` and `v = sum i*G_i`, the
//! other `sum (D - i)*G_i = D*u - v`. A message of `y - u` makes that shares of `D*y`: one value
//! for each element, whatever k is.
//!
//! The numbers of seeds are fixed by the OTs up to the chooser's masked digit e, which is xored to
//! them. The message is the same for every e, so it goes with the sender's own choices and waits for
//! nobody's; e tells the sender its v: with `w_b` the sum of the seeds whose number has bit b,
//! `v = sum of 2^b * (w_b or, where e has bit b, u - w_b)`.

use ot::one_of_n::{choices_cost, choices_layout, masked_cost, masked_layout};
use ot::{Choices, Column, Entry, Job, Masked, ReceiverPads, SenderPads};
use ring::Bits;
use ring::word::{mask, signed};
use wire::{Channel, Cost, Error, Lanes, Result, Role, Values};
use zeroize::Zeroizing;

use super::digit::{Digit, SUMS, Seeds, add};
use super::puncture::{grow, puncture};
use crate::correlations::{Correlations, Demand};
use crate::share::Share;

/// Bits of the widest digit: its streams are two to the power of that.
const WIDEST: u32 = 4;

/// The public plan of row products.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    rows: usize,
    cols: usize,
    bits: u32,
    factor_bits: u32,
    digits: Vec<Digit>,
    first: Role,
}

impl Rows {
    /// `rows` times `cols` values of `bits` (2 to 63), factors of `factor_bits` (2 to `bits`).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other sizes.
    pub(crate) fn new(rows: usize, cols: usize, bits: u32, factor_bits: u32) -> Result<Self> {
        let fits = (2..=63).contains(&bits) && (2..=bits).contains(&factor_bits);
        if !fits || rows.checked_mul(cols.max(16)).is_none_or(|n| n.checked_mul(64).is_none()) {
            return Err(Error::misuse("a product of rows with these sizes"));
        }
        let weight = |digits: &Vec<Digit>| -> u128 {
            digits.iter().map(|digit| digit.weight(cols, bits)).sum()
        };
        let ways = (1..=WIDEST).map(|width| Digit::all(factor_bits, width));
        let digits = ways.min_by_key(weight).unwrap_or_default();
        Ok(Self { rows, cols, bits, factor_bits, digits, first: Role::Client })
    }

    /// Lets `first` begin; the client does by default.
    pub(crate) fn begun_by(self, first: Role) -> Self {
        Self { first, ..self }
    }

    fn seeds(&self) -> Vec<Job> {
        let job = Job { count: self.rows, choice_bits: 1, entry: Entry::Pair(64, 64) };
        vec![job; self.factor_bits as usize]
    }

    /// The messages, as OTs of single elements: sums of levels where there are such, then rows.
    fn answers(&self) -> Vec<Job> {
        let job = |count, bits| Job { count, choice_bits: 1, entry: Entry::Word(bits) };
        let mut jobs = Vec::with_capacity(2 * self.digits.len());
        for digit in &self.digits {
            if digit.sums() > 0 {
                jobs.push(job(self.rows * digit.sums() * SUMS, 64));
            }
            jobs.push(job(self.rows * self.cols, self.bits - digit.shift));
        }
        jobs
    }

    /// OTs consumed.
    pub(crate) fn demand(&self) -> Demand {
        Demand::both(self.seeds())
    }

    /// What [`run`] costs.
    pub(crate) fn cost(&self) -> Cost {
        let (seeds, answers) = (self.seeds(), self.answers());
        let opens = |party| choices_cost(party, &seeds).then(masked_cost(party, &answers));
        opens(self.first).then(opens(!self.first))
    }

    /// The sides off the paths that the bits of a factor take.
    fn choices(&self, factor: &Share) -> Zeroizing<Vec<Bits>> {
        let bits = (0..self.factor_bits).map(|bit| Bits::of_words(factor.words(), bit).not());
        Zeroizing::new(bits.collect())
    }

    /// What the other party's digit is worth, of this party's x in a row with the factor `own`.
    fn worth(&self, digit: Digit, own: u64) -> u64 {
        let top = (own >> (self.factor_bits - 1)) & 1;
        if digit.shift + 1 < self.factor_bits { 1 } else { (2 * top).wrapping_sub(1) }
    }

    /// Bytes of a value of a stream, of which the lower bits count as far as those of `digit` do.
    fn value_bytes(&self, digit: Digit) -> usize {
        if self.bits - digit.shift <= 32 { 4 } else { 8 }
    }

    /// Room for the stream of a leaf, a value for each column.
    fn room(&self, digit: Digit) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(vec![0; self.cols * self.value_bytes(digit)])
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

    /// Masks this party's rows for the other's digits. Adds to `sums` its own share should no masked
    /// choice be 1, and says what each that is adds.
    fn answer(&self, x: &Share, factor: &Share, seeds: [Seeds; 2], sums: &mut [u64]) -> Offered {
        let cols = self.cols.max(1);
        let [left, right] = &seeds;
        let mut values = Vec::with_capacity(2 * self.digits.len());
        let mut flips = Flips::new(Vec::with_capacity(self.factor_bits as usize));
        for digit in &self.digits {
            let low = mask(self.bits - digit.shift);
            let mut levels = Vec::with_capacity(self.rows * digit.sums() * SUMS);
            let mut words = Vec::with_capacity(x.len());
            let mut turned = vec![Vec::with_capacity(x.len()); digit.width as usize];
            let rows = x.words().chunks(cols).zip(sums.chunks_mut(cols)).zip(factor.words());
            for (row, ((xs, sums), own)) in rows.enumerate() {
                let pairs = digit.of(left, row).zip(digit.of(right, row));
                let pairs = Zeroizing::new(pairs.map(|(a, b)| [a, b]).collect::<Vec<_>>());
                let (leaves, sent) = grow(digit.tree(row), &pairs);
                levels.extend(sent.iter().flatten().flat_map(|sum| halves(*sum)));
                let [all, by_bit @ ..] = &self.totals(&leaves, *digit, row)[..] else { continue };
                let worth = self.worth(*digit, *own);
                for (x, all) in xs.iter().zip(all) {
                    words.push(x.wrapping_mul(worth).wrapping_sub(*all) & low);
                }
                for ((shift, ones), turned) in (digit.shift..).zip(by_bit).zip(&mut turned) {
                    for ((sum, ones), all) in sums.iter_mut().zip(ones).zip(all) {
                        *sum = sum.wrapping_add(ones << shift);
                        turned.push(all.wrapping_sub(ones << 1) << shift);
                    }
                }
            }
            flips.extend(turned);
            if digit.sums() > 0 {
                values.push(Values::Words(levels));
            }
            values.push(Values::Words(words));
        }
        let message = Lanes(masked_layout(&self.answers()).into_iter().zip(values).collect());
        Offered { message, flips }
    }

    /// The sum of the streams of all leaves, then that of those whose number has a bit, for each bit
    /// of the digit from the lowest on.
    fn totals(&self, leaves: &[u128], digit: Digit, row: usize) -> Flips {
        let mut totals = Flips::new(vec![vec![0u64; self.cols]; 1 + digit.width as usize]);
        let mut stream = self.room(digit);
        for (at, leaf) in leaves.iter().enumerate() {
            digit.fill(*leaf, row, &mut stream);
            // The first sum has every leaf, the others those whose number has their bit.
            for (bit, sum) in totals.iter_mut().enumerate() {
                if ((at << 1) | 1) >> bit & 1 == 1 {
                    add(sum, &stream, 1);
                }
            }
        }
        totals
    }

    /// Adds to `sums` what the other's masked choices change in this party's share.
    fn turn(&self, flips: &Flips, theirs: &Choices, sums: &mut [u64]) {
        let cols = self.cols.max(1);
        for (flip, (_, values)) in flips.iter().zip(&theirs.0) {
            let Values::Planes(planes) = values else { continue };
            let masks = planes.iter().flat_map(Bits::masks);
            for ((sums, flip), mask) in sums.chunks_mut(cols).zip(flip.chunks(cols)).zip(masks) {
                let pairs = sums.iter_mut().zip(flip);
                pairs.for_each(|(sum, flip)| *sum = sum.wrapping_add(flip & mask));
            }
        }
    }

    /// Adds this party's share of what its digits choose to `sums`.
    fn read(&self, masked: Masked, factor: &Share, asked: &Asked, sums: &mut [u64]) {
        let (cols, seeds) = (self.cols.max(1), &asked.seeds);
        let mut parts = masked.0.into_iter().map(|(_, values)| match values {
            Values::Words(words) => words,
            Values::Planes(_) => Vec::new(),
        });
        for digit in &self.digits {
            let levels = if digit.sums() > 0 { parts.next() } else { None };
            let (levels, words) = (levels.unwrap_or_default(), parts.next().unwrap_or_default());
            let mut levels = levels.chunks((digit.sums() * SUMS).max(1));
            let mut stream = self.room(*digit);
            let rows = words.chunks(cols).zip(sums.chunks_mut(cols)).zip(factor.words());
            for (row, ((words, sums), own)) in rows.enumerate() {
                let sent: Vec<[u128; 2]> = levels.next().map(blocks).unwrap_or_default();
                let keys = Zeroizing::new(digit.of(seeds, row).collect::<Vec<_>>());
                // The masked choices move the path from where the digit says.
                let side = |bit: usize| u128::from((own >> bit) & 1 ^ asked.moved(bit, row));
                let side = |bit: usize| side(bit).wrapping_neg();
                let path = Zeroizing::new(digit.levels().map(side).collect::<Vec<_>>());
                let leaves = puncture(digit.tree(row), &path, &keys, &sent);
                let own = (own >> digit.shift) & mask(digit.width);
                for (sum, word) in sums.iter_mut().zip(words) {
                    *sum = sum.wrapping_add(word.wrapping_mul(own) << digit.shift);
                }
                // The leaf at 0 is the one that is missing, which counts for nothing.
                for (at, leaf) in (0..).zip(leaves.iter()).skip(1) {
                    digit.fill(*leaf, row, &mut stream);
                    add(sums, &stream, own.wrapping_sub(own ^ at) << digit.shift);
                }
            }
        }
    }
}

/// A block as words.
fn halves(block: u128) -> [u64; 2] {
    [block as u64, (block >> 64) as u64]
}

/// Words as pairs of blocks.
fn blocks(words: &[u64]) -> Vec<[u128; 2]> {
    let block = |low: u64, high: u64| u128::from(low) | (u128::from(high) << 64);
    let (pairs, _) = words.as_chunks::<SUMS>();
    pairs.iter().map(|[a, b, c, d]| [block(*a, *b), block(*c, *d)]).collect()
}

/// Words by bit of a factor, or of a digit.
type Flips = Zeroizing<Vec<Vec<u64>>>;

/// A message that answers choices, and what each masked choice that is 1 adds to the share of who sends
/// it: for every bit of the factor a word for each element.
struct Offered {
    message: Masked,
    flips: Flips,
}

/// Masked choices, and the seeds that they open.
struct Asked {
    choices: Choices,
    seeds: Seeds,
}

impl Asked {
    /// The masked choice of a row by a bit of its factor.
    fn moved(&self, bit: usize, row: usize) -> u64 {
        match self.choices.0.get(bit) {
            Some((_, Values::Planes(planes))) => planes.first().map_or(0, |plane| plane.get(row)),
            _ => 0,
        }
    }
}

/// Both seeds of every OT.
fn pairs(pads: Vec<SenderPads>) -> [Seeds; 2] {
    let mut seeds = [Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new())];
    for pads in pads {
        for (seeds, column) in seeds.iter_mut().zip(pads.into_columns()) {
            seeds.push(whole(column));
        }
    }
    seeds
}

fn whole(mut column: Column) -> Vec<u128> {
    let mut halves = column.words.iter_mut().map(|words| Zeroizing::new(std::mem::take(words)));
    let (low, high) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
    let pairs = low.iter().zip(high.iter());
    pairs.map(|(low, high)| u128::from(*low) | (u128::from(*high) << 64)).collect()
}

/// Chooses the side of each OT that `choices` say.
fn choose(pads: Vec<ReceiverPads>, choices: &[Bits]) -> Asked {
    let (mut asked, mut seeds) = (Vec::new(), Zeroizing::new(Vec::new()));
    for (pads, choice) in pads.into_iter().zip(choices) {
        let lane = pads.job().choice_lane();
        let (mut planes, opened) = pads.into_parts();
        planes.iter_mut().for_each(|plane| plane.xor(choice));
        asked.push((lane, Values::Planes(planes)));
        seeds.push(whole(opened));
    }
    Asked { choices: Lanes(asked), seeds }
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
    let begins = channel.role() == plan.first;
    let (jobs, answers) = (plan.seeds(), plan.answers());
    let asked = choose(ots.receive(&jobs)?, &plan.choices(factor));
    let mut sums = plan.local(x, factor);
    let Offered { message, flips } = plan.answer(x, factor, pairs(ots.send(&jobs)?), &mut sums);
    if begins {
        channel.send(&asked.choices)?;
        channel.send(&message)?;
    }
    let theirs: Choices = channel.receive(&choices_layout(&jobs))?;
    let masked: Masked = channel.receive(&masked_layout(&answers))?;
    if !begins {
        channel.send(&asked.choices)?;
        channel.send(&message)?;
    }
    plan.turn(&flips, &theirs, &mut sums);
    plan.read(masked, factor, &asked, &mut sums);
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
        for (rows, cols, bits, factor_bits) in [
            (9, 7, 31, 11),
            (40, 1, 20, 3),
            (1, 100, 63, 30),
            (64, 3, 4, 4),
            (65, 2, 9, 2),
            (3, 300, 24, 17),
            (2, 50, 17, 9),
            (5, 31, 13, 7),
        ] {
            let x = rng.uniform(rows * cols, bits);
            let x: Vec<i64> = x.iter().map(|word| signed(*word, bits)).collect();
            let factors = rng.uniform(rows, factor_bits - 1);
            let factors: Vec<i64> = factors.iter().map(|word| *word as i64).collect();
            let plan = Rows::new(rows, cols, bits, factor_bits).unwrap();
            let first = if cols % 2 == 0 { Role::Server } else { Role::Client };
            let plan = plan.begun_by(first);
            assert_eq!((plan.cost().rounds, plan.cost().first), (2, Some(first)));
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
