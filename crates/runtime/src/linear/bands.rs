//! Bands between secret edges: the server takes each edge from its share, and the signs of all
//! differences are added up.

use graph::NodeWeights;
use graph::ops::Bands;
use mpc::Share;
use mpc::compare::Radix;
use mpc::sign::{Signs, Told};
use wire::{Error, Result};
use zeroize::Zeroizing;

use crate::step::context::{Context, Party, input};
use crate::step::linear::LinearProtocol;
use crate::step::sliced::Sliced;
use crate::step::spent::Spent;
use crate::step::weights::{Encoded, WeightSource};

/// The server's edges.
struct Edges(Zeroizing<Vec<i64>>);

/// The bands of some values.
#[derive(Debug)]
pub struct BandsLayer {
    edges: usize,
    signs: Sliced,
}

impl BandsLayer {
    /// Plans the bands of `count` values of `bits` as integers of `out_bits`, by comparisons of
    /// digits of `radix`, or of the fastest.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that signs do not have.
    pub fn new(
        bands: &Bands,
        count: usize,
        [bits, out_bits]: [u32; 2],
        radix: Option<Radix>,
    ) -> Result<Self> {
        let tests = count.saturating_mul(bands.edges);
        let radix = radix.unwrap_or_else(|| Radix::fastest(tests, bits.saturating_sub(1)));
        let plan = |count| Signs::new(count, bits, Told::NonNegative, out_bits, radix);
        Ok(Self { edges: bands.edges, signs: Sliced::new(tests, plan)? })
    }

    /// For each value its differences to all edges, which the server knows.
    fn differences(&self, values: &Share, edges: Option<&[i64]>) -> Share {
        let edge = |at: usize| edges.and_then(|edges| edges.get(at)).map_or(0, |edge| *edge as u64);
        let of_value = |value: &u64| {
            let value = *value;
            (0..self.edges).map(move |at| value.wrapping_sub(edge(at)))
        };
        Share::new(values.words().iter().flat_map(of_value).collect(), values.bits())
    }

    /// For each value how many edges are not above it.
    fn counted(&self, found: &Share) -> Share {
        let sum = |found: &[u64]| found.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
        let sums = found.words().chunks(self.edges.max(1)).map(sum);
        Share::new(sums.collect(), found.bits())
    }
}

impl LinearProtocol for BandsLayer {
    fn operator(&self) -> &'static str {
        "bands"
    }

    fn describe(&self) -> String {
        format!("{} secret edges, {}", self.edges, self.signs.describe())
    }

    fn encode_weights(&self, source: &mut WeightSource<'_>) -> Result<Option<Encoded>> {
        let NodeWeights { bias, .. } = &source.take()?;
        if bias.len() != self.edges {
            return Err(Error::misuse("a model with another number of edges than its graph says"));
        }
        Ok(Some(Encoded::new(Edges(Zeroizing::new(bias.clone())))))
    }

    fn protocols(&self) -> Vec<&Sliced> {
        vec![&self.signs]
    }

    fn spent(&self) -> Spent {
        Spent::default()
    }

    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share> {
        let edges = match cx.party {
            Party::Client { .. } => None,
            Party::Server { weights, .. } => Some(weights.of::<Edges>(cx.node)?),
        };
        let values = input(&inputs, 0)?;
        let differences = self.differences(values, edges.map(|edges| edges.0.as_slice()));
        let found = Sliced::run_after(Some(&self.signs), cx.channel, differences, cx.feed)?;
        Ok(self.counted(&found))
    }
}
