//! A fully connected layer and its ReLU under a committed key, and clients that encrypt something
//! else than they have committed to.

use gc::tagged::{ALPHA_BITS, BitTags, MacKeys};
use graph::{Conv, Linear, Rounding};
use he::rlwe::{Fresh, Params};
use ot::ideal::deal;
use ot::{ReceiverBatch, SenderBatch};
use ring::word::{mask, signed};
use ring::{Bits, Random};
use wire::testing::{Outcome, run_pair};
use wire::{Channel, Cost, Result};

use super::super::check::{ACCEPTED, BOUND};
use super::super::*;
use super::is_peer;
use crate::garbled::checked::{self, Checked};
use crate::garbled::{Clip, Function};
use crate::linear::coefficient::{Layer, ServerWeights, Worker, checked as linear};
use crate::share::Share;

const INPUTS: usize = 100;
const OUTPUTS: usize = 30;
/// Bits of inputs, of results and of their shares' rings.
const X: u32 = 8;
const OUT: u32 = 12;
const SHIFT: u32 = 13;
const P: u32 = 26;

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Client {
    Honest,
    /// Adds `.1` to coefficient `.0` of what it encrypts, and opens what follows.
    Encrypts(usize, u64),
    /// The same, and says that its errors are small.
    Denies(usize, u64),
    /// Says that its public key has other errors than it has.
    PublicKey,
    /// Commits to its phase of output `.0` plus `.1`.
    Shifts(usize, u64),
}

struct Case {
    layer: Layer,
    weights: ServerWeights,
    x: [Vec<u64>; 2],
    relu: Checked,
    want: Vec<f64>,
}

type Left = (Outcome<Result<Values>>, Outcome<Result<Share>>);

pub(super) fn conv(inputs: usize, outputs: usize) -> Conv {
    Conv {
        in_channels: inputs,
        in_height: 1,
        in_width: 1,
        out_channels: outputs,
        kernel: [1; 2],
        stride: [1; 2],
        padding: [0; 4],
        dilation: [1, 1],
        groups: 1,
    }
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut rng = Random::seeded(seed);
        let conv = conv(INPUTS, OUTPUTS);
        let linear = Linear {
            conv,
            accumulator_bits: OUT + SHIFT,
            weight_bits: 8,
            shift: SHIFT,
            rounding: Rounding::Stochastic,
            addend: None,
            choice: None,
            square_bits: None,
        };
        let layer = linear::plan(&linear, OUT, 1, Params::new(2048, 52).unwrap()).unwrap();
        let weight: Vec<i32> =
            rng.uniform(INPUTS * OUTPUTS, 8).iter().map(|w| signed(*w, 8) as i32).collect();
        let bias: Vec<i64> = rng.uniform(OUTPUTS, 16).iter().map(|b| signed(*b, 16)).collect();
        let weights = ServerWeights::new(&layer, &weight, &bias, &mut (1 << 24)).unwrap();
        let x = [0; 2].map(|_| rng.uniform(INPUTS, X));
        let row = |(at, bias): (usize, &i64)| {
            let row = weight[at * INPUTS..][..INPUTS].iter().zip(x[0].iter().zip(&x[1]));
            let sum: i64 = row.map(|(w, (a, b))| i64::from(*w) * (a + b) as i64).sum();
            ((sum + bias) as f64 / f64::from(1 << SHIFT)).clamp(0.0, 255.0)
        };
        let want = bias.iter().enumerate().map(row).collect();
        let then = Function { drop: 0, floor: false, clip: Some(Clip { low: 0, saturate: 8 }) };
        let relu = Checked::map(OUTPUTS, (OUT + 8, 8), OUT, then, P).unwrap();
        Self { layer, weights, x, relu, want }
    }

    fn params(&self) -> Params {
        self.layer.params()
    }

    /// Bits of phases.
    const fn phase_bits() -> u32 {
        OUT + 8
    }

    /// Correlations for the key, inputs, phases, samples, and masks of both kinds.
    fn ots(&self) -> [usize; 6] {
        let masks = COMBINATIONS * ALPHA_BITS as usize;
        let bits = [X as usize * INPUTS, Self::phase_bits() as usize * OUTPUTS];
        [key_ots(self.params()), bits[0], bits[1], COVER_BITS as usize * COMBINATIONS, masks, masks]
    }

    /// Tags of inputs, phases, samples and masks.
    fn plans(&self) -> [BitTags; 4] {
        let tags = |count, bits, ring| BitTags::new(count, bits, ring + ALPHA_BITS).unwrap();
        [
            tags(INPUTS, X, OUT + SHIFT),
            tags(OUTPUTS, Self::phase_bits(), Self::phase_bits()),
            tags(COMBINATIONS, COVER_BITS, self.params().modulus_bits()),
            tags(COMBINATIONS, ALPHA_BITS, 0),
        ]
    }

    fn cost(&self) -> Cost {
        let [inputs, phases, covers, masks] = self.plans();
        let modulus = self.params().modulus_bits() + ALPHA_BITS;
        key_costs(self.params())
            .unwrap()
            .into_iter()
            .collect::<Cost>()
            .then(commit_cost(X as usize, INPUTS))
            .then(tag_cost(&inputs))
            .then(self.layer.cost())
            .then(commit_cost(Self::phase_bits() as usize, OUTPUTS))
            .then(tag_cost(&phases))
            .then(self.relu.cost())
            .then(commit_cost(COVER_BITS as usize, COMBINATIONS))
            .then(tag_cost(&covers))
            .then(tag_cost(&masks))
            .then(tag_cost(&masks))
            .then(check_cost(modulus, Some(modulus)))
    }

    fn key(
        &self,
        ch: &mut Channel,
        ots: ReceiverBatch,
        does: Client,
        rng: &mut Random,
    ) -> Result<ClientKey> {
        let mut key = commit_key(ch, ots, self.params(), rng)?;
        if does == Client::PublicKey {
            let error = &mut key.errors[3];
            *error += if *error > 0 { -1 } else { 1 };
        }
        key.tag(ch)?.publish(ch)
    }

    fn client(&self, ch: &mut Channel, mut ots: ReceiverBatch, does: Client) -> Result<Values> {
        let mut rng = Random::seeded(41);
        let [inputs, phases, covers, masks] = self.plans();
        let [key, x, p, y, zeros, smalls] = self.ots().map(|count| ots.split_off(count));
        let key = self.key(ch, key, does, &mut rng)?;
        let committed = commit(ch, x, planes(&self.x[0], X))?;
        let z = tag_client(ch, &inputs, &committed)?;
        let worker = &mut Worker { rng: &mut rng, threads: 1 };
        let bits = self.params().modulus_bits();
        let change = |fresh: &mut Fresh| match does {
            Client::Encrypts(at, by) | Client::Denies(at, by) => {
                fresh.body[at] = fresh.body[at].wrapping_add(by) & mask(bits);
            }
            _ => {}
        };
        let (phase, errors) = linear::client_with(ch, &self.layer, &key, &z, worker, change)?;
        let mut words: Vec<u64> = phase.values().iter().map(|word| *word as u64).collect();
        words.iter_mut().for_each(|word| *word &= mask(Self::phase_bits()));
        if let Client::Shifts(at, by) = does {
            words[at] = words[at].wrapping_add(by) & mask(Self::phase_bits());
        }
        let committed = commit(ch, p, planes(&words, Self::phase_bits()))?;
        let tagged = tag_client(ch, &phases, &committed)?;
        let results = checked::client(ch, &self.relu, &committed)?;
        let cover = commit(ch, y, cover_planes(&mut rng))?;
        let cover = tag_client(ch, &covers, &cover)?;
        let mut mask_of = |ots| {
            let bits = random(ots, ALPHA_BITS as usize, COMBINATIONS)?;
            tag_client(ch, &masks, &bits)
        };
        let [zeros, smalls] = [mask_of(zeros)?, mask_of(smalls)?];
        let relations = [phase.less(&tagged)?, key.relation().clone()];
        let small = SmallValues { errors: &errors, masks: &smalls, covers: &cover };
        match does {
            Client::Honest => check_client(ch, &relations, &zeros, Some(small), &mut rng)?,
            _ => {
                let denies = |opened: &mut [Vec<u64>]| {
                    if matches!(does, Client::Denies(..)) {
                        opened[1].iter_mut().for_each(|low| *low = (*low).min(ACCEPTED as u64));
                    }
                };
                insist_client(ch, &relations, &zeros, small, &mut rng, &denies)?;
            }
        }
        Ok(results)
    }

    fn server(&self, ch: &mut Channel, mut ots: SenderBatch) -> Result<Share> {
        let mut rng = Random::seeded(42);
        let keys = MacKeys::new(*ots.delta(), &mut rng);
        let [inputs, phases, covers, masks] = self.plans();
        let [key, x, p, y, zeros, smalls] = self.ots().map(|count| ots.split_off(count));
        let key = accept_key(ch, key, self.params())?.tag(ch, &keys, &mut rng)?;
        let key = key.receive(ch, &keys)?;
        let committed = accept(ch, x, X as usize, INPUTS)?;
        let of_z = tag_server(ch, &inputs, &keys, &committed, &mut rng)?;
        let z = Share::new(self.x[1].clone(), OUT + SHIFT);
        let worker = &mut Worker { rng: &mut rng, threads: 1 };
        let both = (&key, &keys);
        let (share, phase, errors) =
            linear::server(ch, &self.layer, both, &self.weights, &z, &of_z, worker)?;
        let committed = accept(ch, p, Self::phase_bits() as usize, OUTPUTS)?;
        let tagged = tag_server(ch, &phases, &keys, &committed, &mut rng)?;
        let low = Self::phase_bits() - OUT;
        let others = share.words().iter().map(|word| word << low).collect();
        let others = Share::new(others, Self::phase_bits());
        let (share, _) =
            checked::server(ch, &self.relu, &keys, &committed, (&others, &[]), &mut rng)?;
        let cover = accept(ch, y, COVER_BITS as usize, COMBINATIONS)?;
        let cover = tag_server(ch, &covers, &keys, &cover, &mut rng)?;
        let mut mask_of = |ots| {
            let bits = accept_random(ots, ALPHA_BITS as usize, COMBINATIONS)?;
            tag_server(ch, &masks, &keys, &bits, &mut rng)
        };
        let [zeros, smalls] = [mask_of(zeros)?, mask_of(smalls)?];
        let relations = [phase.less(&tagged)?, key.relation().clone()];
        let small = SmallKeys { errors: &errors, masks: &smalls, covers: &cover };
        check_server(ch, &relations, &zeros, Some(small), &keys, &mut rng)?;
        Ok(share)
    }

    fn run(&self, seed: u64, does: Client) -> Left {
        let (sender, receiver) = deal(&mut Random::seeded(seed), self.ots().iter().sum());
        run_pair(|ch| self.client(ch, receiver, does), |ch| self.server(ch, sender))
    }
}

pub(super) fn planes(words: &[u64], bits: u32) -> Vec<Bits> {
    (0..bits).map(|bit| Bits::of_words(words, bit)).collect()
}

#[test]
fn honest_runs_give_the_layer_for_the_cost_said() {
    for seed in 0..4 {
        let case = Case::new(seed);
        let (client, server) = case.run(seed, Client::Honest);
        assert_eq!((client.cost, server.cost), (case.cost(), case.cost()));
        let (values, share) = (client.value.unwrap(), server.value.unwrap());
        for (at, want) in case.want.iter().enumerate() {
            let sum = (values.values()[at] as u64).wrapping_add(share.words()[at]) & mask(P);
            assert!((sum as f64 - want).abs() <= 2.0, "{sum} for {want}");
        }
        assert!(case.want.contains(&0.0));
        assert!(case.want.iter().any(|want| *want > 20.0));
    }
}

/// What the client encrypts is off by one place of an input, by an error just above the bound, by half the
/// modulus; and a coefficient that should be empty is not.
#[test]
fn a_client_that_encrypts_something_else_is_caught() {
    let case = Case::new(9);
    let bits = case.params().modulus_bits();
    let place = 1u64 << (bits - OUT - SHIFT);
    let large = BOUND as u64 + 64;
    let empty = case.params().degree() - 1;
    for (at, by) in [(0, place), (5, large), (17, 1 << (bits - 1)), (empty, place), (empty, large)]
    {
        for does in [Client::Encrypts(at, by), Client::Denies(at, by)] {
            let (_, server) = case.run(at as u64, does);
            assert!(is_peer(&server.value), "{does:?}");
        }
    }
}

/// An error that every bound allows passes: the check is one of magnitudes.
#[test]
fn small_errors_pass() {
    let case = Case::new(10);
    let (client, server) = case.run(1, Client::Encrypts(3, 1000));
    assert!(client.value.is_ok() && server.value.is_ok());
}

#[test]
fn a_client_that_lies_about_its_public_key_is_caught() {
    let (_, server) = Case::new(11).run(2, Client::PublicKey);
    assert!(is_peer(&server.value));
}

#[test]
fn a_client_that_shifts_its_phase_is_caught() {
    let case = Case::new(12);
    for by in [1, 1 << 8, 1 << (OUT + 7)] {
        let (_, server) = case.run(by, Client::Shifts(4, by));
        assert!(is_peer(&server.value), "{by}");
    }
}
