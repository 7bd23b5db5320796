//! What there is to compute.

use std::sync::Arc;

use gc::{Batch, Builder, Circuit, Ring, Wire, Word};
use wire::{Cost, Error, Result, Segment};

use super::shape::{Entrance, Function};
use crate::correlations::Demand;
use crate::correlations::circuits::Circuits;

/// Most values that go into one plan.
const MOST_VALUES: usize = 1 << 24;

/// The public plan of a function of shares by garbled circuits. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Garbled {
    pub(super) circuits: Circuits,
    /// The ring of the shares that go in.
    pub(super) from: Ring,
    pub(super) entrance: Entrance,
    /// Values that go in, and which of them each word of each instance is; word after word.
    pub(super) inputs: usize,
    pub(super) positions: Option<Arc<[usize]>>,
    /// What the server adds to each output.
    pub(super) lows: Vec<i64>,
}

impl Garbled {
    /// Plans `then` of each of `count` values of a signed `width` bits.
    ///
    /// # Errors
    /// [`Error::Misuse`] for no values, and for widths that the rings have no room for.
    pub fn map(count: usize, from: Ring, width: u32, then: Function, to: Ring) -> Result<Self> {
        let entrance = Entrance::signed(from, width, then.offset()?, then.drop)?;
        let mut builder = Builder::new();
        let moved = entrance.reconstruct(&mut builder);
        let value = then.dropped(&moved);
        let (result, signed) = then.clipped(&mut builder, &value);
        builder.output(&result, signed);
        Self::new(builder.finish()?, count, from, entrance, vec![(to, then.low())])
    }

    /// Plans `then` of the maximum of each window, `windows` being positions below `inputs`. A
    /// window smaller than the largest repeats its last element. As `then` never decreases, low
    /// bits are dropped before the maximum and clipped after it, once a window.
    ///
    /// # Errors
    /// As [`Garbled::map`]; [`Error::Misuse`] for an empty window or one beyond the inputs.
    pub fn maximum(
        inputs: usize,
        windows: &[Vec<usize>],
        from: Ring,
        width: u32,
        then: Function,
        to: Ring,
    ) -> Result<Self> {
        let positions = positions(inputs, windows)?;
        let words = positions.len() / windows.len().max(1);
        let entrance = Entrance::signed(from, width, then.offset()?, then.drop)?;
        let mut builder = Builder::new();
        let values = (0..words).map(|_| {
            let moved = entrance.reconstruct(&mut builder);
            (then.dropped(&moved), Word::new())
        });
        let values = values.collect();
        let (largest, _) = builder.largest(values).unwrap_or_default();
        let (result, signed) = then.clipped(&mut builder, &largest);
        builder.output(&result, signed);
        let outputs = vec![(to, then.low())];
        let plan = Self::new(builder.finish()?, windows.len(), from, entrance, outputs)?;
        Ok(Self { inputs, positions: Some(positions.into()), ..plan })
    }

    /// Plans the position, shared in `to`, of the largest of `classes` values of each of `rows`
    /// rows, the first of equal ones, as [`crate::nonlinear::argmax`] has it; and its value, shared
    /// in `value`, if that is given ([`super::run_all`]).
    ///
    /// # Errors
    /// As [`Garbled::map`].
    pub fn top(
        rows: usize,
        classes: usize,
        from: Ring,
        width: u32,
        to: Ring,
        value: Option<Ring>,
    ) -> Result<Self> {
        let entrance = Entrance::signed(from, width, 0, 0)?;
        let index_bits = classes.max(2).next_power_of_two().ilog2() as usize;
        let mut builder = Builder::new();
        let entries = (0..classes as i64)
            .map(|at| (entrance.reconstruct(&mut builder), Builder::constant(at, index_bits)));
        let entries = entries.collect();
        let (largest, at) = builder.largest(entries).unwrap_or_default();
        builder.output(&at, false);
        let mut outputs = vec![(to, 0)];
        if let Some(ring) = value {
            builder.output(&largest, true);
            outputs.push((ring, 0));
        }
        let plan = Self::new(builder.finish()?, rows, from, entrance, outputs)?;
        let rows_of = |class: usize| (0..rows).map(move |row| row * classes + class);
        let positions: Vec<usize> = (0..classes).flat_map(rows_of).collect();
        Ok(Self { positions: Some(positions.into()), ..plan })
    }

    /// The unsigned word that `circuit` makes of each of `count` values below `2^width`.
    ///
    /// # Errors
    /// As [`Garbled::map`].
    pub(crate) fn unsigned(
        count: usize,
        from: Ring,
        width: u32,
        circuit: impl FnOnce(&[Wire], &mut Builder) -> Word,
        to: Ring,
    ) -> Result<Self> {
        let first = |values: &[Word], builder: &mut Builder| {
            vec![circuit(values.first().map_or(&[], Vec::as_slice), builder)]
        };
        Self::lists(count, from, &[width], first, &[to])
    }

    /// The unsigned words that `circuit` makes of one value of each of several lists of
    /// `count` values, the values of list i below `2^widths[i]`, for each output its ring. The
    /// lists go in one after the other, shared in `from`, of which a list's low bits matter.
    ///
    /// # Errors
    /// As [`Garbled::map`].
    pub(crate) fn lists(
        count: usize,
        from: Ring,
        widths: &[u32],
        circuit: impl FnOnce(&[Word], &mut Builder) -> Vec<Word>,
        to: &[Ring],
    ) -> Result<Self> {
        let widest = widths.iter().copied().max().unwrap_or(0);
        let entrance = Entrance::unsigned(from, widest)?;
        let mut builder = Builder::new();
        let value = |width: &u32| {
            let mut word = entrance.reconstruct(&mut builder);
            word.truncate(*width as usize);
            word
        };
        let values: Vec<Word> = widths.iter().map(value).collect();
        let results = circuit(&values, &mut builder);
        results.iter().for_each(|result| builder.output(result, false));
        let outputs = to.iter().map(|ring| (*ring, 0)).collect();
        Self::new(builder.finish()?, count, from, entrance, outputs)
    }

    /// `circuit` for `count` instances, for each output its ring and what the server adds.
    pub(super) fn new(
        circuit: Circuit,
        count: usize,
        from: Ring,
        entrance: Entrance,
        outputs: Vec<(Ring, i64)>,
    ) -> Result<Self> {
        let (rings, lows) = outputs.into_iter().unzip();
        let batch = Batch::new(Arc::new(circuit), count, rings)?;
        let circuits = Circuits::new(batch, entrance.ring)?;
        let inputs = circuits.values();
        if inputs > MOST_VALUES {
            return Err(Error::misuse(format!("{inputs} values in one garbled step; split it")));
        }
        Ok(Self { circuits, from, entrance, inputs, positions: None, lows })
    }

    /// Returns the batch of circuits consumed.
    pub fn demand(&self) -> Demand {
        Demand::circuit(self.circuits.clone())
    }

    /// Returns what [`super::run`] costs.
    pub fn cost(&self) -> Cost {
        self.circuits.online_cost()
    }

    /// Layout of the server's masked shares.
    pub(super) fn layout(&self) -> Vec<Segment> {
        self.circuits.masked()
    }

    /// Returns the number of AND gates of all instances.
    pub fn and_gates(&self) -> usize {
        self.circuits.batch().and_gates()
    }

    /// Returns the number of values that go in.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the number of values of each output list.
    pub fn outputs(&self) -> usize {
        self.circuits.batch().count()
    }
}

/// The positions of every window's words, word after word.
pub(super) fn positions(inputs: usize, windows: &[Vec<usize>]) -> Result<Vec<usize>> {
    let fits = |window: &Vec<usize>| !window.is_empty() && window.iter().all(|at| *at < inputs);
    if windows.is_empty() || !windows.iter().all(fits) {
        return Err(Error::misuse("an empty window or one beyond its input"));
    }
    let words = windows.iter().map(Vec::len).max().unwrap_or_default();
    let word = |at: usize| {
        windows.iter().filter_map(move |window| window.get(at).or(window.last()).copied())
    };
    Ok((0..words).flat_map(word).collect())
}
