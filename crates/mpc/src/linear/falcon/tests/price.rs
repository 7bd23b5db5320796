//! What the complex transform costs beside the one mod p.

use graph::Conv;
use ring::Random;

use super::super::*;
use crate::linear::coefficient::tests::conv;
use crate::linear::falcon::ntt;

fn fastest(run: impl Fn() -> std::time::Duration) -> f64 {
    (0..9).map(|_| run().as_secs_f64() * 1e3).fold(f64::INFINITY, f64::min)
}

/// Twice the ciphertexts and four times the products, at the same degree and modulus.
#[test]
fn the_transform_mod_p_takes_half_the_bytes_and_less_of_the_time() {
    for conv in [conv([8, 32], [16, 16], 3, 1, 1), Conv::fully_connected(1024, 160)] {
        let mut rng = Random::seeded(1);
        let count = conv.in_channels * conv.out_channels * conv.kernel[0] * conv.kernel[1];
        let words = rng.uniform(count, 8);
        let weight: Vec<i32> = words.into_iter().map(|word| word as i32 - 128).collect();
        let complex = Layer::new(&conv, 8, 24, AcceptLeakage::hiding_bits(8)).unwrap();
        let exact = ntt::Layer::new(&conv, 8, 24).unwrap();
        let exact = exact.with_params(complex.params()).unwrap();
        let (ours, theirs) = (exact.cost(), complex.cost());
        assert!(2 * ours.client_to_server <= theirs.client_to_server + 100);
        assert!(2 * ours.server_to_client <= theirs.server_to_client + 100);
        assert_eq!(4 * exact.operations().multiplications, complex.operations().multiplications);

        let complex = Measurement::new(&complex, &weight, &mut rng).unwrap();
        let exact = ntt::Measurement::new(&exact, &weight, &mut rng).unwrap();
        let complex = fastest(|| complex.run().unwrap());
        let exact = fastest(|| exact.run().unwrap().0);
        assert!(exact <= 0.4 * complex, "{conv:?}: {exact} and {complex} ms");
    }
}
