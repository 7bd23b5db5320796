//! What an engine computes in a second, for `make bench-web`: kernels of a client without a network, on data out of a hat.

use std::time::Duration;

use he::rlwe::{Params, SecretKey};
use ot::measure::{Refill, encryptions};
use ring::host::Instant;
use ring::pack::{pack_into, unpack};
use ring::simd::Level;
use ring::{Random, Seed};
use wasm_bindgen::prelude::*;
use wire::{Error, Result};

use crate::failure::thrown;

/// Degree and modulus of the ring that most layers use.
const RING: (usize, u32) = (4096, 50);
/// Bits of its plaintexts, and of integers in answers.
const BITS: (u32, u32) = (22, 33);
/// Trees of Ferret at a time.
const TREES: usize = 32;

/// Units that are done in a second, measured for `milliseconds`:
///
/// - `aes`: blocks under one key,
/// - `ferret sender`, `ferret receiver`: correlations of the smallest set,
/// - `rlwe encrypt`, `rlwe decrypt`: ciphertexts of degree 4096, all coefficients,
/// - `decode`: bytes of integers of an answer.
///
/// # Errors
/// The JSON of an error: for another unit.
#[wasm_bindgen]
pub fn rate(unit: &str, milliseconds: f64) -> Result<f64, JsValue> {
    let time = Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default();
    measured(unit, time).map_err(thrown)
}

fn measured(unit: &str, time: Duration) -> Result<f64> {
    let mut rng = Random::seeded(1);
    match unit {
        "aes" => {
            let mut blocks = [1; 256];
            per_second(time, || Ok(encryptions(Level::best(), &mut blocks)))
        }
        "ferret sender" => {
            let mut refill = Refill::new(TREES, &mut rng);
            per_second(time, || Ok(refill.send()))
        }
        "ferret receiver" => {
            let mut refill = Refill::new(TREES, &mut rng);
            per_second(time, || refill.receive())
        }
        "rlwe encrypt" | "rlwe decrypt" => rlwe(unit, time, &mut rng).map_err(defect)?,
        "decode" => {
            let values = rng.uniform(RING.0, BITS.1);
            let mut bytes = Vec::new();
            pack_into(&mut bytes, &values, BITS.1);
            per_second(time, || {
                std::hint::black_box(unpack(&bytes, values.len(), BITS.1));
                Ok(bytes.len())
            })
        }
        _ => Err(Error::misuse(format!("there is no unit `{unit}`"))),
    }
}

fn rlwe(unit: &str, time: Duration, rng: &mut Random) -> he::Result<Result<f64>> {
    let params = Params::new(RING.0, RING.1)?;
    let secret = SecretKey::generate(params, rng)?;
    let values = rng.uniform(RING.0, BITS.0);
    if unit == "rlwe encrypt" {
        return Ok(per_second(time, || {
            secret.encrypt(params, &values, BITS.0, rng).map_err(defect)?;
            Ok(1)
        }));
    }
    let keep: Vec<usize> = (0..RING.0).collect();
    let public = secret.public_key(&Seed([1; 16]), rng)?;
    let cipher = secret.encrypt(params, &values, BITS.0, rng)?.expand(params)?;
    let (response, _) = cipher.respond(&public, &keep, BITS.1, rng)?;
    Ok(per_second(time, || {
        secret.decrypt(&response, &keep).map_err(defect)?;
        Ok(1)
    }))
}

fn defect(error: he::Error) -> Error {
    Error::internal(error.to_string())
}

/// Does some work again and again for this time, after once for the engine to compile it.
fn per_second(time: Duration, mut work: impl FnMut() -> Result<usize>) -> Result<f64> {
    work()?;
    let (since, mut done) = (Instant::now(), 0);
    loop {
        done += work()?;
        let taken = since.elapsed();
        if taken >= time && !taken.is_zero() {
            return Ok(done as f64 / taken.as_secs_f64());
        }
    }
}
