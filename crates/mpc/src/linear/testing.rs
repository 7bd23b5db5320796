//! What tests of linear layers have in common: random cases, both parties in memory, and what
//! messages may show.

use graph::Conv;
use he::bfv::{Params, SecretKey};
use ring::word::signed;
use ring::{Random, Seed};
use wire::testing::{Outcome, Tamper, run_tampered};
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use super::coefficient::tests::{clear, conv};
use super::residues::{add, lift, negate, uniform};
use super::slots::{Operations, ServerKeys};
use super::transport::Worker;

pub(super) type Words = Zeroizing<Vec<u64>>;

/// The client and the server of a layer on packed slots.
pub(super) type Both = Ends<Words, (Words, Operations)>;

/// A frame that is tampered with: whose it is, its number, and how.
pub(super) type Tampered = Option<(Role, usize, Tamper)>;

/// A layer on packed slots with everything that both parties bring.
pub(super) struct Case<L, W> {
    pub(super) layer: L,
    pub(super) weights: W,
    /// Shares of the input mod the plaintext prime, the client's first.
    pub(super) x: [Words; 2],
    pub(super) want: Vec<i64>,
    pub(super) threads: usize,
}

impl<L, W> Case<L, W> {
    /// Random inputs of 8 bits, weights of 6 and biases of 10, which `encode` makes weights of.
    pub(super) fn random(
        layer: L,
        conv: &Conv,
        prime: u64,
        encode: impl FnOnce(&L, &[i32], &[i64]) -> Result<W>,
    ) -> Self {
        let mut rng = Random::seeded(5);
        let x = integers(&mut rng, conv.in_channels * conv.in_height * conv.in_width, 8);
        let per_output = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
        let weight = integers(&mut rng, conv.out_channels * per_output, 6);
        let weight: Vec<i32> = weight.into_iter().map(|w| w as i32).collect();
        let bias = integers(&mut rng, conv.out_channels, 10);
        let want = clear(conv, &x, &weight, &bias);
        let theirs = uniform(&mut rng, x.len(), prime);
        let ours = x.iter().zip(theirs.iter());
        let ours = ours.map(|(x, s)| add(lift(*x, prime), negate(*s, prime), prime)).collect();
        let weights = encode(&layer, &weight, &bias).unwrap();
        Self { layer, weights, x: [Zeroizing::new(ours), theirs], want, threads: 1 }
    }

    /// Runs both ends with fresh keys of `params` for rotations by `steps`.
    pub(super) fn run(
        &self,
        (params, steps): (&Params, &[usize]),
        tamper: Tampered,
        client: impl Fn(&mut Channel, &SecretKey, &[u64], &mut Worker<'_>) -> Result<Words> + Sync,
        server: impl Fn(
            &mut Channel,
            &ServerKeys,
            &[u64],
            &mut Worker<'_>,
        ) -> Result<(Words, Operations)>
        + Sync,
    ) -> Both {
        let mut rng = Random::seeded(77);
        let key = SecretKey::generate(params, &mut rng).unwrap();
        let public = key.public_key(&Seed([9; 16]), &mut rng).unwrap();
        let rotations = key.rotation_keys(steps, false, &Seed([8; 16]), &mut rng).unwrap();
        let keys = ServerKeys { public, rotations };
        let ([ours, theirs], threads) = (&self.x, self.threads);
        run_tampered(
            tamper,
            |ch| {
                let worker = &mut Worker { rng: &mut Random::seeded(78), threads };
                client(ch, &key, ours, worker)
            },
            |ch| {
                let worker = &mut Worker { rng: &mut Random::seeded(79), threads };
                server(ch, &keys, theirs, worker)
            },
        )
    }
}

/// Uniform signed integers of `bits`.
pub(super) fn integers(rng: &mut Random, count: usize, bits: u32) -> Vec<i64> {
    rng.uniform(count, bits).into_iter().map(|word| signed(word, bits)).collect()
}

/// Convolutions of images of a few pixels.
pub(super) fn small_shapes() -> Vec<Conv> {
    vec![
        conv([5, 7], [4, 4], 3, 1, 1),
        conv([17, 6], [4, 4], 5, 1, 2),
        conv([6, 40], [3, 3], 1, 1, 0),
        conv([3, 2], [2, 2], 3, 1, 1),
        conv([2, 3], [1, 1], 3, 1, 1),
        conv([4, 4], [5, 5], 3, 3, 3),
        conv([3, 3], [4, 4], 1, 1, 2),
    ]
}

/// The integer that a residue stands for.
pub(super) fn centred(residue: u64, prime: u64) -> i64 {
    if residue > prime / 2 { -(negate(residue, prime) as i64) } else { residue as i64 }
}

/// Checks the results of a run, mod `prime`, its cost at both parties and the server's work.
pub(super) fn check(
    (ours, theirs): Both,
    prime: u64,
    want: (&[i64], Cost, Operations),
    name: &str,
) {
    let (results, cost, operations) = want;
    assert_eq!((ours.cost, theirs.cost), (cost, cost));
    let (theirs, done) = theirs.value.unwrap();
    assert_eq!(done, operations);
    let ours = ours.value.unwrap();
    let sums = ours.iter().zip(theirs.iter()).map(|(a, b)| centred(add(*a, *b, prime), prime));
    assert!(sums.eq(results.iter().copied()), "{name}");
}

/// What client and server of any layer end with.
pub(super) type Ends<A, B> = (Outcome<Result<A>>, Outcome<Result<B>>);

/// Checks that two runs send the same bytes and end with the same values.
pub(super) fn same_bytes<A: PartialEq, B: PartialEq>(
    (ours, theirs): &Ends<A, B>,
    (client, server): Ends<A, B>,
) {
    assert!(client.frames == ours.frames && server.frames == theirs.frames);
    assert!(client.value.unwrap() == *ours.value.as_ref().unwrap());
    assert!(server.value.unwrap() == *theirs.value.as_ref().unwrap());
}

/// Checks that a layer of 3x3 filters, two channels to two, refuses other weights and values
/// that its 24 bits do not hold.
pub(super) fn misfits_are_refused(encode: impl Fn(&[i32], &[i64]) -> Option<Error>) {
    for (weight, bias, why) in [
        (vec![0; 35], vec![0; 2], "fit"),
        (vec![1 << 24; 36], vec![0; 2], "wider"),
        (vec![0; 36], vec![1 << 24; 2], "wider"),
    ] {
        assert!(encode(&weight, &bias).unwrap().to_string().contains(why));
    }
}

/// Checks that zero, dense and sparse weights give messages of the same sizes, the client's the
/// same to the byte, in as many rounds and with as many operations.
pub(super) fn weights_do_not_show(count: usize, run: impl Fn(&[i32]) -> Both) {
    let sparse: Vec<i32> = (0..count).map(|i| i32::from(i % 97 == 0)).collect();
    let shown = [vec![0; count], vec![31; count], sparse].map(|weight| {
        let (ours, theirs) = run(&weight);
        assert!(ours.value.is_ok());
        let lengths = theirs.frames.iter().map(Vec::len).collect::<Vec<_>>();
        (ours.frames, lengths, ours.cost, theirs.value.unwrap().1)
    });
    assert!(shown.iter().all(|other| *other == shown[0]));
}

/// Checks by chi-square in 16 bins that `values` are uniform in `0..range`.
pub(super) fn uniform_below(values: &[u64], range: u64) {
    let mut bins = [0f64; 16];
    for value in values {
        bins[(u128::from(*value) * 16 / u128::from(range)) as usize] += 1.0;
    }
    let expected = values.len() as f64 / 16.0;
    let statistic: f64 = bins.iter().map(|n| (n - expected).powi(2) / expected).sum();
    assert!(statistic < 50.0, "chi-square {statistic} of 15 degrees of freedom");
}

/// Checks that whoever receives the first frame of a run notices that it was tampered with, or
/// computes on.
pub(super) fn tampering_is_noticed_or_harmless<A, B>(run: impl Fn(Tampered) -> Ends<A, B>) {
    for sender in [Role::Client, Role::Server] {
        for how in Tamper::ALL {
            let (ours, theirs) = run(Some((sender, 0, how)));
            let victim = match sender {
                Role::Client => theirs.value.err(),
                Role::Server => ours.value.err(),
            };
            match how {
                Tamper::Retag | Tamper::Oversize => {
                    assert!(matches!(victim, Some(Error::Peer { .. })), "{how:?}");
                }
                Tamper::Truncate | Tamper::Close => assert!(victim.is_some()),
                Tamper::Flip | Tamper::Repeat | Tamper::Drop | Tamper::Swap => {
                    assert!(matches!(
                        victim,
                        None | Some(Error::Peer { .. } | Error::Transport(_))
                    ));
                }
            }
        }
    }
}

/// Checks that a run succeeds and that both parties' messages are those of the pinned transcript.
pub(super) fn pinned<A, B>(name: &str, (ours, theirs): &Ends<A, B>) {
    let pinned = include_str!("../../../../tests/golden/transcripts.txt");
    assert!(ours.value.is_ok() && theirs.value.is_ok());
    let line = format!("{name}: {} {}", ours.transcript, theirs.transcript);
    assert!(pinned.lines().any(|pinned| pinned == line), "not pinned: {line}");
}
