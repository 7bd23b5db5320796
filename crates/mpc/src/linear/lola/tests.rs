mod shown;

use graph::Conv;
use he::bfv::SecretKey;
use ring::{Random, Seed};
use zeroize::Zeroizing;

use super::*;
use crate::linear::transport::Worker;

fn conv(channels: [usize; 2], side: usize, kernel: usize, padding: [usize; 4]) -> Conv {
    Conv {
        in_channels: channels[0],
        in_height: side,
        in_width: side,
        out_channels: channels[1],
        kernel: [kernel, kernel],
        stride: [2, 2],
        padding,
        dilation: [1, 1],
        groups: 1,
    }
}

fn linear(conv: Conv) -> Layer {
    Layer::Linear { conv, weight_bits: 4 }
}

/// Weights and results in the clear, of any network.
struct Clear {
    network: Network,
    weights: Vec<Option<LayerWeights>>,
    rng: Random,
}

impl Clear {
    fn new(network: Network) -> Self {
        let mut rng = Random::seeded(7);
        let weights = network.layers.iter().map(|layer| match layer {
            Layer::Square { multipliers: [1, 0] } => None,
            Layer::Square { .. } => {
                let bias = Zeroizing::new((0..12).map(|i| 3 * i - 17).collect());
                Some(LayerWeights { weight: Zeroizing::default(), bias })
            }
            Layer::Linear { conv, .. } => {
                let taps = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
                let count = conv.out_channels * taps;
                let small = |w: &u64| (*w as i32 & 15).clamp(0, 14) - 7;
                let weight: Vec<i32> = rng.uniform(count, 8).iter().map(small).collect();
                let bias = rng.uniform(conv.out_channels, 8);
                let bias = bias.iter().map(|b| *b as i64 - 128).collect();
                let (weight, bias) = (Zeroizing::new(weight), Zeroizing::new(bias));
                Some(LayerWeights { weight, bias })
            }
        });
        let weights = weights.collect();
        Self { network, weights, rng }
    }

    fn run(&self, x: &[i64]) -> Vec<i64> {
        let mut x = x.to_vec();
        for (layer, weights) in self.network.layers.iter().zip(&self.weights) {
            x = match (layer, weights) {
                (Layer::Linear { conv, .. }, Some(weights)) => {
                    let matrix = matrix::Matrix::new(conv.clone());
                    let row = |output: usize| {
                        let entry = |(input, x): (usize, &i64)| {
                            let at = matrix.weight(output, input);
                            at.map_or(0, |at| i64::from(weights.weight[at]) * x)
                        };
                        let sum: i64 = x.iter().enumerate().map(entry).sum();
                        sum + weights.bias[matrix.channel(output)]
                    };
                    (0..matrix.outputs()).map(row).collect()
                }
                (Layer::Square { multipliers: [a, b] }, constants) => {
                    let constant = |i: usize| constants.as_ref().map_or(0, |c| c.bias[i]);
                    x.iter().enumerate().map(|(i, x)| a * x * x + b * x + constant(i)).collect()
                }
                _ => panic!("a layer without weights"),
            };
        }
        x
    }

    /// Runs it encrypted and compares.
    fn check(&mut self, plan: &Plan) {
        let rng = &mut self.rng;
        let secret = SecretKey::generate(plan.params(), rng).unwrap();
        let seeds = Seeds([1, 2, 3].map(|i| Seed([i; 16])));
        let messages = evaluation_keys(plan, &secret, &seeds, rng).unwrap();
        let keys = ServerKeys::new(plan, &seeds, messages.map(Ok)).unwrap();
        let weights = ServerWeights::new(plan, &self.weights, 2).unwrap();
        let client = Client::new(plan).unwrap();
        let x: Vec<i64> = rng
            .uniform(self.network.inputs * plan.batch(), 3)
            .iter()
            .map(|x| *x as i64 - 3)
            .collect();
        let mut worker = Worker { rng, threads: 2 };
        let mut requests: Vec<_> = (0..plan.primes().len())
            .map(|prime| client.encrypt(plan, &secret, &x, prime, &mut worker).unwrap())
            .collect();

        let answer = answer(
            plan,
            &keys,
            &weights,
            &mut |i| Ok(std::mem::take(&mut requests[i])),
            &mut worker,
        )
        .unwrap();

        let want: Vec<i64> = x.chunks(self.network.inputs).flat_map(|x| self.run(x)).collect();
        assert_eq!(client.decrypt(&secret, answer).unwrap(), want);
    }
}

fn lola(small: bool) -> Network {
    let mut layers =
        vec![linear(conv([1, 5], 28, 5, [0, 0, 1, 1])), Layer::Square { multipliers: [1, 0] }];
    if !small {
        layers.extend([
            linear(Conv::fully_connected(845, 100)),
            Layer::Square { multipliers: [1, 0] },
        ]);
    }
    let last = if small { 845 } else { 100 };
    layers.push(linear(Conv::fully_connected(last, 10)));
    Network { inputs: 784, layers, output_bits: if small { 36 } else { 56 }, input: None, batch: 1 }
}

#[test]
fn lolas_networks_equal_their_integers_from_every_representation() {
    for small in [true, false] {
        for input in [None, Some(Representation::Convolution), Some(Representation::Dense)] {
            let network = Network { input, ..lola(small) };

            let plan = Plan::new(&network).unwrap();
            assert!(plan.spare() >= f64::from(SPARE_BITS), "{}", plan.describe().join("\n"));
            Clear::new(network).check(&plan);
        }
    }
}

#[test]
fn batches_and_sparse_inputs_equal_their_integers() {
    let layers = vec![
        linear(conv([1, 3], 6, 3, [0; 4])),
        Layer::Square { multipliers: [-1, 9] },
        linear(Conv::fully_connected(12, 5)),
        Layer::Square { multipliers: [1, 0] },
        linear(Conv::fully_connected(5, 3)),
    ];
    for (batch, input) in [(5, None), (1, Some(Representation::Sparse))] {
        let network = Network { inputs: 36, layers: layers.clone(), output_bits: 50, input, batch };
        let plan = Plan::new(&network).unwrap();
        Clear::new(network).check(&plan);
    }
}
