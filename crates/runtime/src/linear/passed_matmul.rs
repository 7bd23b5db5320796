//! Products of a run of several inputs, whose right factors are one matrix that grows by an entry with
//! each of them: attention of many tokens to earlier ones and to each other.
//!
//! The factor of the first input and the new entries of all others are one matrix. Left factors below each other,
//! times that matrix, are one product for all inputs, so that ciphertexts of an entry are sent once. Where
//! entries are columns, an input has those columns of its rows that it sees; where products sum over entries,
//! its rows have zeros in place of others.

use mpc::Share;
use mpc::linear::appended_matmul::{Axis, Shape};
use wire::{Error, Result};

use super::shared_matmul::SharedProduct;
use crate::step::context::{Context, input};
use crate::step::keys::KeyDemand;
use crate::step::linear::LinearProtocol;
use crate::step::sliced::Sliced;
use crate::step::spent::Spent;

/// The products of several inputs, which follow each other.
#[derive(Debug)]
pub struct PassedProduct {
    /// The product of one input.
    pub(crate) shape: Shape,
    /// How many inputs there are.
    pub(crate) inputs: usize,
    /// The product of all of them.
    pub(crate) product: SharedProduct,
}

impl PassedProduct {
    /// The sides of the product of all inputs, where one has this `shape`: products, rows, inner and columns.
    pub(crate) fn sides(shape: &Shape, inputs: usize) -> [usize; 4] {
        let (rows, more) = (shape.rows * inputs, inputs - 1);
        match shape.axis {
            Axis::Columns => [shape.batch, rows, shape.inner, shape.columns + more],
            Axis::Inner => [shape.batch, rows, shape.inner + more, shape.columns],
        }
    }

    /// Left factors below each other, from those of one input after another.
    fn below(&self, a: &Share) -> Share {
        let Shape { batch, rows, inner, .. } = self.shape;
        let wide = Self::sides(&self.shape, self.inputs)[2];
        let mut words = vec![0; batch * self.inputs * rows * wide];
        for (at, row) in a.words().chunks_exact(inner.max(1)).enumerate() {
            let (input, item, row_of) = (at / (batch * rows), at / rows % batch, at % rows);
            let first = ((item * self.inputs + input) * rows + row_of) * wide;
            for (place, word) in row.iter().enumerate() {
                let to = match self.shape.axis {
                    Axis::Inner => self.shape.seen(input, place),
                    Axis::Columns => place,
                };
                if let Some(slot) = words.get_mut(first + to) {
                    *slot = *word;
                }
            }
        }
        Share::new(words, a.bits())
    }

    /// All entries that the inputs see, each once: those of the first input, and the last of each other.
    fn united(&self, b: &Share) -> Share {
        let Shape { batch, inner, columns, .. } = self.shape;
        let [.., all_inner, all_columns] = Self::sides(&self.shape, self.inputs);
        // The input that sees the entry at its end, or the first one, and the place that it has there.
        let seen = |entry: usize, entries: usize| match entry < entries {
            true => (0, entry),
            false => (entry + 1 - entries, entries - 1),
        };
        let places = (0..batch).flat_map(|item| {
            (0..all_inner).flat_map(move |i| {
                (0..all_columns).map(move |column| {
                    let (input, i, column) = match self.shape.axis {
                        Axis::Inner => {
                            let (input, i) = seen(i, inner);
                            (input, i, column)
                        }
                        Axis::Columns => {
                            let (input, column) = seen(column, columns);
                            (input, i, column)
                        }
                    };
                    ((input * batch + item) * inner + i) * columns + column
                })
            })
        });
        b.gather(places)
    }

    /// The results of one input after another.
    fn apart(&self, product: &Share) -> Share {
        let Shape { batch, rows, columns, .. } = self.shape;
        let wide = Self::sides(&self.shape, self.inputs)[3];
        let places = (0..self.inputs).flat_map(|input| {
            (0..batch * rows).flat_map(move |at| {
                let first = ((at / rows * self.inputs + input) * rows + at % rows) * wide;
                (0..columns).map(move |column| {
                    first
                        + match self.shape.axis {
                            Axis::Inner => column,
                            Axis::Columns => self.shape.seen(input, column),
                        }
                })
            })
        });
        product.gather(places)
    }
}

impl LinearProtocol for PassedProduct {
    fn operator(&self) -> &'static str {
        self.product.operator()
    }

    fn describe(&self) -> String {
        format!("{} inputs at once, {}", self.inputs, self.product.describe())
    }

    fn keys(&self) -> KeyDemand {
        self.product.keys()
    }

    fn protocols(&self) -> Vec<&Sliced> {
        self.product.protocols()
    }

    fn failure(&self) -> f64 {
        self.product.failure()
    }

    fn spent(&self) -> Spent {
        self.product.spent()
    }

    fn memory(&self) -> u64 {
        self.product.memory()
    }

    fn ciphertexts(&self) -> usize {
        self.product.ciphertexts()
    }

    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share> {
        let Shape { batch, rows, inner, columns, .. } = self.shape;
        let (a, b) = (input(&inputs, 0)?, input(&inputs, 1)?);
        let fits = |share: &Share, each: usize| share.len() == self.inputs * batch * each;
        if !fits(a, rows * inner) || !fits(b, inner * columns) {
            return Err(Error::misuse("shares that do not fit a product of several inputs"));
        }
        let all = vec![self.below(a), self.united(b)];
        drop(inputs);
        Ok(self.apart(&self.product.run(cx, all)?))
    }
}
