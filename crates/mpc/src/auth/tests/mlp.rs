//! A network 784-128-128-10: real correlations, one check for all layers, and the server's share of the
//! result only after it.

use gc::tagged::{ALPHA_BITS, BitTags, MacKeys};
use graph::{Linear, Rounding};
use he::rlwe::Params;
use ot::{CotReceiver, CotSender, SessionId, Source, setup_both};
use ring::word::{mask, signed};
use ring::{Random, Seed};
use wire::testing::{Outcome, run_pair};
use wire::{Channel, Cost, Message, Packed, Result, Role, Segment};

use super::super::*;
use super::is_peer;
use super::layer::{conv, planes};
use crate::garbled::checked::{self, Checked};
use crate::garbled::{Clip, Function};
use crate::linear::coefficient::{Layer, ServerWeights, Worker, checked as linear};
use crate::share::Share;

const WIDTHS: [usize; 4] = [784, 128, 128, 10];
const SHIFTS: [u32; 3] = [12, 9, 9];
/// Bits of results and of phases.
const OUT: u32 = 12;
const PHASE: u32 = OUT + 8;
const SEED: Seed = Seed([7; 16]);

/// The server's share of the result.
type Opened = Packed<{ wire::tags::RESULT }>;

/// What the client ends with and what its meter had before the run; what the server ends with.
type Left = (Outcome<(Result<Vec<u64>>, Cost)>, Outcome<Result<()>>);

struct Net {
    layers: Vec<Layer>,
    weights: Vec<ServerWeights>,
    /// Of each layer but the last.
    relus: Vec<Checked>,
    input: Vec<u64>,
    want: Vec<f64>,
    /// A client that cheats adds this to a phase of the second layer.
    shift: u64,
}

fn params() -> Params {
    Params::new(2048, 52).unwrap()
}

impl Net {
    fn new(seed: u64, shift: u64) -> Self {
        let mut rng = Random::seeded(seed);
        let (mut layers, mut weights, mut relus) = (Vec::new(), Vec::new(), Vec::new());
        let input = rng.uniform(WIDTHS[0], 8);
        let mut values: Vec<f64> = input.iter().map(|x| *x as f64).collect();
        for (at, (pair, shift)) in WIDTHS.windows(2).zip(SHIFTS).enumerate() {
            let plan = Linear {
                conv: conv(pair[0], pair[1]),
                accumulator_bits: OUT + shift,
                weight_bits: 8,
                shift,
                rounding: Rounding::Stochastic,
                addend: None,
                choice: None,
                square_bits: None,
            };
            let layer = linear::plan(&plan, OUT, params()).unwrap();
            let weight: Vec<i32> =
                rng.uniform(pair[0] * pair[1], 8).iter().map(|w| signed(*w, 8) as i32).collect();
            let bias: Vec<i64> = rng.uniform(pair[1], 12).iter().map(|b| *b as i64).collect();
            let rows = weight.chunks(pair[0]).zip(&bias);
            let sum = |(row, bias): (&[i32], &i64)| {
                let sum: f64 = row.iter().zip(&values).map(|(w, x)| f64::from(*w) * x).sum();
                (sum + *bias as f64) / f64::from(1 << shift)
            };
            values = rows.map(sum).collect();
            weights.push(ServerWeights::new(&layer, &weight, &bias, &mut (1 << 28)).unwrap());
            layers.push(layer);
            if let Some(next) = SHIFTS.get(at + 1) {
                let clip = Some(Clip { low: 0, saturate: 8 });
                let then = Function { drop: 0, floor: false, clip };
                let to = OUT + next;
                relus.push(Checked::map(pair[1], (PHASE, PHASE - OUT), OUT, then, to).unwrap());
                values.iter_mut().for_each(|value| *value = value.clamp(0.0, 255.0));
            }
        }
        Self { layers, weights, relus, input, want: values, shift }
    }

    /// Tags of inputs, of the phases of both hidden layers, of samples and of masks.
    fn plans() -> [BitTags; 4] {
        let tags = |count, bits, ring| BitTags::new(count, bits, ring + ALPHA_BITS).unwrap();
        [
            tags(WIDTHS[0], 8, OUT + SHIFTS[0]),
            tags(WIDTHS[1], PHASE, PHASE),
            tags(COMBINATIONS, COVER_BITS, params().modulus_bits()),
            tags(COMBINATIONS, ALPHA_BITS, 0),
        ]
    }

    /// All correlations of a run.
    fn ots() -> usize {
        let [inputs, phases, covers, masks] = Self::plans().map(|plan| plan.labels());
        key_ots(params()) + inputs + 2 * phases + covers + 2 * masks
    }

    fn result() -> Segment {
        Segment { count: WIDTHS[3], bits: OUT }
    }

    /// What a run costs once there are correlations.
    fn cost(&self) -> Cost {
        let [inputs, phases, covers, masks] = Self::plans();
        let bits =
            |plan: &BitTags| commit_cost(plan.bits() as usize, plan.count()).then(tag_cost(plan));
        let hidden = self
            .layers
            .iter()
            .zip(&self.relus)
            .map(|(layer, relu)| layer.cost().then(bits(&phases)).then(relu.cost()));
        let modulus = params().modulus_bits() + ALPHA_BITS;
        let mut all = key_cost(params()).unwrap().then(bits(&inputs));
        all = hidden.fold(all, Cost::then).then(self.layers[2].cost());
        all.then(bits(&covers))
            .then(tag_cost(&masks))
            .then(tag_cost(&masks))
            .then(check_cost(modulus, Some(modulus)))
            .then(Cost::message(Role::Server, Opened::bounds(&vec![Self::result()]).0))
    }

    fn client(&self, ch: &mut Channel, ots: &mut CotReceiver) -> Result<Vec<u64>> {
        let mut rng = Random::seeded(51);
        let [inputs, phases, covers, masks] = Self::plans();
        let key = commit_key(ch, ots.take(key_ots(params()))?, params(), &SEED, &mut rng)?;
        let committed = commit(ch, ots.take(inputs.labels())?, planes(&self.input, 8))?;
        let mut z = tag_client(ch, &inputs, &committed)?;
        let (mut relations, mut errors) = (vec![key.relation().clone()], Vec::new());
        let mut last = Vec::new();
        for (at, layer) in self.layers.iter().enumerate() {
            let worker = &mut Worker { rng: &mut rng, threads: 1 };
            let (phase, more) = linear::client(ch, layer, &key, &z, worker)?;
            errors.extend(more);
            last = phase.values().iter().map(|word| *word as u64 & mask(PHASE)).collect();
            let Some(relu) = self.relus.get(at) else { break };
            if at == 1 {
                last[9] = last[9].wrapping_add(self.shift) & mask(PHASE);
            }
            let committed = commit(ch, ots.take(phases.labels())?, planes(&last, PHASE))?;
            relations.push(phase.less(&tag_client(ch, &phases, &committed)?)?);
            z = checked::client(ch, relu, &committed)?;
        }
        let cover = commit(ch, ots.take(covers.labels())?, cover_planes(&mut rng))?;
        let cover = tag_client(ch, &covers, &cover)?;
        let mut mask_of = || {
            let bits = random(ots.take(masks.labels())?, ALPHA_BITS as usize, COMBINATIONS)?;
            tag_client(ch, &masks, &bits)
        };
        let (zeros, smalls) = (mask_of()?, mask_of()?);
        let small = SmallValues { errors: &errors, masks: &smalls, covers: &cover };
        match self.shift {
            0 => check_client(ch, &relations, &zeros, Some(small), &mut rng)?,
            _ => super::layer::cheat_all(ch, &relations, &zeros, small, &mut rng)?,
        }
        let opened: Opened = ch.receive(&vec![Self::result()])?;
        let sums = opened.concat().into_iter().zip(last);
        Ok(sums.map(|(s, p)| s.wrapping_add(p >> (PHASE - OUT)) & mask(OUT)).collect())
    }

    fn server(&self, ch: &mut Channel, ots: &mut CotSender) -> Result<()> {
        let mut rng = Random::seeded(52);
        let [inputs, phases, covers, masks] = Self::plans();
        let first = ots.take(key_ots(params()))?;
        let keys = MacKeys::new(*first.delta(), &mut rng);
        let key = accept_key(ch, first, params(), &SEED, &keys, &mut rng)?;
        let committed = accept(ch, ots.take(inputs.labels())?, 8, WIDTHS[0])?;
        let mut of_z = tag_server(ch, &inputs, &keys, &committed, &mut rng)?;
        let mut z = Share::new(vec![0; WIDTHS[0]], OUT + SHIFTS[0]);
        let (mut relations, mut errors) = (vec![key.relation().clone()], Vec::new());
        for (at, (layer, weights)) in self.layers.iter().zip(&self.weights).enumerate() {
            let worker = &mut Worker { rng: &mut rng, threads: 1 };
            let (share, phase, more) =
                linear::server(ch, layer, (&key, &keys), weights, &z, &of_z, worker)?;
            errors.extend(more);
            let Some(relu) = self.relus.get(at) else {
                z = share;
                break;
            };
            let planes = PHASE as usize;
            let committed = accept(ch, ots.take(phases.labels())?, planes, WIDTHS[at + 1])?;
            let tagged = tag_server(ch, &phases, &keys, &committed, &mut rng)?;
            relations.push(phase.less(&tagged)?);
            let high = share.words().iter().map(|word| word << (PHASE - OUT)).collect();
            let x = Share::new(high, PHASE);
            (z, of_z) = checked::server(ch, relu, &keys, &committed, &x, &mut rng)?;
        }
        let cover = accept(ch, ots.take(covers.labels())?, COVER_BITS as usize, COMBINATIONS)?;
        let cover = tag_server(ch, &covers, &keys, &cover, &mut rng)?;
        let mut mask_of = || {
            let ots = ots.take(masks.labels())?;
            let bits = accept_random(ots, ALPHA_BITS as usize, COMBINATIONS)?;
            tag_server(ch, &masks, &keys, &bits, &mut rng)
        };
        let (zeros, smalls) = (mask_of()?, mask_of()?);
        let small = SmallKeys { errors: &errors, masks: &smalls, covers: &cover };
        check_server(ch, &relations, &zeros, Some(small), &keys, &mut rng)?;
        ch.send(&Opened::one(z.words().to_vec(), OUT))
    }

    /// Both parties, with what the client's meter had before the run.
    fn run(&self) -> Left {
        let session = SessionId([3; 32]);
        run_pair(
            |ch| {
                let mut rng = Random::seeded(1);
                let made = setup_both(ch, &mut rng, &session, Source::SoftSpoken8);
                let (_, mut ots) = made.unwrap();
                ots.extend(ch, Self::ots()).unwrap();
                let before = ch.meter().cost();
                (self.client(ch, &mut ots), before)
            },
            |ch| {
                let mut rng = Random::seeded(2);
                let made = setup_both(ch, &mut rng, &session, Source::SoftSpoken8);
                let (mut ots, _) = made.unwrap();
                ots.extend(ch, Self::ots()).unwrap();
                self.server(ch, &mut ots)
            },
        )
    }
}

#[test]
fn a_network_gives_its_result_after_one_check() {
    let net = Net::new(1, 0);
    let (client, server) = net.run();
    let (value, before) = client.value;
    assert!(server.value.is_ok(), "{:?}", server.value);
    for (got, want) in value.unwrap().iter().zip(&net.want) {
        // Errors of a unit or two in each layer, times its weights.
        assert!((signed(*got, OUT) as f64 - want).abs() < 16.0, "{got} {want}");
    }
    assert!(net.want.iter().any(|want| want.abs() > 40.0));
    assert_eq!(before.bytes() + net.cost().bytes(), client.cost.bytes());
    // As the page says them, base OTs included.
    assert_eq!((client.cost.bytes(), before.bytes()), (775_652, 81_271));
    assert_eq!((client.cost.rounds, Net::ots()), (24, 34_048));
}

#[test]
fn a_client_that_shifts_a_hidden_value_gets_no_result() {
    for shift in [1, 1 << (PHASE - 1)] {
        let (client, server) = Net::new(2, shift).run();
        assert!(is_peer(&server.value));
        assert!(client.value.0.is_err());
        // The server's share of the result is not among what it sent.
        let sent = server.frames.iter().filter_map(|frame| frame.first());
        assert!(sent.into_iter().all(|tag| *tag != wire::tags::RESULT));
    }
}
