//! All operators by the names that they have in JSON: those of this crate and those that other
//! crates add.

use super::bands::Bands;
use super::concat::Concat;
use super::embedding::Embedding;
use super::extend::Extend;
use super::fold::Fold;
use super::gelu::Gelu;
use super::geometry::View;
use super::layer_norm::LayerNorm;
use super::linear::Linear;
use super::lookup::Lookup;
use super::matmul::MatMul;
use super::max_pool::MaxPool;
use super::offset::Offset;
use super::operator::Operator;
use super::pad::Pad;
use super::product::Product;
use super::relu::Relu;
use super::relu_softmax::ReluSoftmax;
use super::requantize::Requantize;
use super::reshape::Reshape;
use super::smu::Smu;
use super::softmax::Softmax;
use super::sum::Sum;
use super::sum_pool::SumPool;
use super::trees::Trees;
use super::winograd::Winograd;
use crate::error::{Error, Result};
use serde::de::DeserializeOwned;
use std::sync::{PoisonError, RwLock};

/// How an operator comes out of JSON.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// The operator's name in JSON: what [`Operator::kind`] returns. Lower-case letters,
    /// digits and hyphens.
    pub name: &'static str,
    /// The reader of the JSON of the operator's fields; that of no fields is `null`.
    pub read: fn(&str) -> serde_json::Result<Box<dyn Operator>>,
}

impl Registration {
    /// An operator whose fields serde reads.
    pub const fn of<T: Operator + DeserializeOwned>(name: &'static str) -> Self {
        Self { name, read: |fields| Ok(Box::new(serde_json::from_str::<T>(fields)?)) }
    }
}

/// The operators of this crate. A new one is a file of [`crate::ops`] and a line here.
static BUILT_IN: [Registration; 25] = [
    Registration::of::<Bands>("bands"),
    Registration::of::<Concat>("concat"),
    Registration::of::<Embedding>("embedding"),
    Registration::of::<Extend>("extend"),
    Registration::of::<Fold>("fold"),
    Registration::of::<Gelu>("gelu"),
    Registration::of::<LayerNorm>("layer-norm"),
    Registration::of::<Linear>("linear"),
    Registration::of::<Lookup>("lookup"),
    Registration::of::<MatMul>("mat-mul"),
    Registration::of::<MaxPool>("max-pool"),
    Registration::of::<Offset>("offset"),
    Registration::of::<Pad>("pad"),
    Registration::of::<Product>("product"),
    Registration::of::<Relu>("relu"),
    Registration::of::<ReluSoftmax>("relu-softmax"),
    Registration::of::<Requantize>("requantize"),
    Registration::of::<Reshape>("reshape"),
    Registration::of::<Smu>("smu"),
    Registration::of::<Softmax>("softmax"),
    Registration::of::<Sum>("sum"),
    Registration::of::<SumPool>("sum-pool"),
    Registration::of::<Trees>("trees"),
    Registration::of::<View>("view"),
    Registration::of::<Winograd>("winograd"),
];

static REGISTERED: RwLock<Vec<&'static Registration>> = RwLock::new(Vec::new());

/// Makes an operator known to everything in this process that reads graphs.
///
/// # Errors
/// [`Error::Misuse`] for a name that an operator has already, and for one that is no name.
pub fn register(registration: &'static Registration) -> Result<()> {
    let name = registration.name;
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=64).contains(&name.len()) || !name.chars().all(letter) {
        return Err(Error::Misuse(format!("`{name}` is no name for an operator")));
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let mut taken = BUILT_IN.iter().chain(registered.iter().copied());
    if taken.any(|other| other.name == name) {
        return Err(Error::Misuse(format!("there is an operator `{name}` already")));
    }
    registered.push(registration);
    Ok(())
}

/// The operator of that name, if there is one.
pub(super) fn find(name: &str) -> Option<&'static Registration> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let mut all = BUILT_IN.iter().chain(registered.iter().copied());
    all.find(|registration| registration.name == name)
}
