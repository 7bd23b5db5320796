//! Convolutions on products by OT.

use graph::{Conv, WeightBits};
use wire::{Cost, Error, Result, Role, Segment};
use zeroize::Zeroizing;

use super::columns;
use super::message::Masked;
use super::plan::Product;
use super::right::Right;
use super::weights::Weights;
use crate::correlations::Demand;
use crate::linear::winograd::Tiles;
use crate::share::Share;
use pricing::Work;

/// Bytes of the longest masked input.
const LONGEST: u64 = 1 << 27;

/// How images become columns of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
enum View {
    /// A column for every position.
    Positions(Conv),
    /// A column for every tile, in every place of the Winograd domain.
    Tiles(Tiles),
    /// A column for every tile, where the features come in the Winograd domain and the products
    /// stay there.
    Features(Tiles),
}

/// The public plan of a convolution of one or several images, without its rescale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    view: View,
    images: usize,
    product: Product,
}

impl Layer {
    /// Plans any convolution, mod 2^bits, with weights `[O, I/g, kh, kw]`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for sizes and widths out of range.
    pub fn positions(conv: &Conv, bits: u32, choice: &WeightBits, images: usize) -> Result<Self> {
        let sides = columns::sides(conv);
        Self::of(View::Positions(conv.clone()), sides, bits, choice, images)
    }

    /// Plans the layer in the Winograd domain, with weights `[O, I, tile + 2, tile + 2]`.
    ///
    /// # Errors
    /// As [`Layer::positions`], and for other kernels than dense 3x3 ones.
    pub fn tiles(
        conv: &Conv,
        tile: usize,
        bits: u32,
        choice: &WeightBits,
        images: usize,
    ) -> Result<Self> {
        let tiles = Tiles::new(conv, tile);
        let tiles = tiles.ok_or_else(|| Error::misuse("tiles of this kernel"))?;
        let sides = tiles.sides();
        Self::of(View::Tiles(tiles), sides, bits, choice, images)
    }

    /// Plans products `[places, O, tiles]` of the features of one image's tiles,
    /// `[places, I, tiles]`. The weights are those of [`Layer::tiles`].
    ///
    /// # Errors
    /// As [`Layer::positions`].
    pub fn features(tiles: &Tiles, bits: u32, choice: &WeightBits) -> Result<Self> {
        Self::of(View::Features(tiles.clone()), tiles.sides(), bits, choice, 1)
    }

    fn of(
        view: View,
        [places, rows, inner, columns]: [usize; 4],
        bits: u32,
        choice: &WeightBits,
        images: usize,
    ) -> Result<Self> {
        let sides = [places, rows, inner, columns.saturating_mul(images)];
        let product = Product::new(sides, bits, &choice.importance, choice.offset)?;
        let layer = Self { view, images, product };
        if layer.masked().len() > LONGEST {
            return Err(Error::misuse("a layer of this size"));
        }
        Ok(layer)
    }

    fn conv(&self) -> &Conv {
        match &self.view {
            View::Positions(conv) => conv,
            View::Tiles(tiles) | View::Features(tiles) => tiles.conv(),
        }
    }

    /// Returns the number of values of the input, of all images.
    pub fn inputs(&self) -> usize {
        let conv = self.conv();
        if let View::Features(_) = self.view {
            return self.product.inputs();
        }
        self.images * conv.in_channels * conv.in_height * conv.in_width
    }

    /// Returns the number of values of the result.
    pub fn outputs(&self) -> usize {
        let conv = self.conv();
        if let View::Features(_) = self.view {
            return self.product.outputs();
        }
        self.images * conv.out_channels * conv.out_height() * conv.out_width()
    }

    /// Images of a run.
    pub fn images(&self) -> usize {
        self.images
    }

    /// Channels of the result.
    pub fn channels(&self) -> usize {
        self.conv().out_channels
    }

    /// Returns the products.
    pub fn product(&self) -> &Product {
        &self.product
    }

    /// Returns the rows and columns of a tile, where the products are in the Winograd domain.
    pub fn tile(&self) -> Option<usize> {
        match &self.view {
            View::Positions(_) => None,
            View::Tiles(tiles) | View::Features(tiles) => Some(tiles.tile()),
        }
    }

    /// Returns whether it is a matrix product.
    pub fn is_fully_connected(&self) -> bool {
        self.conv().is_fully_connected()
    }

    /// Returns the correlations for each part of the preparation.
    pub fn demands(&self) -> Vec<Demand> {
        self.product.demands()
    }

    /// Returns what choices and corrections of each part of the preparation cost beside them.
    pub fn preprocess_costs(&self) -> Vec<[Cost; 2]> {
        self.product.costs()
    }

    /// Returns what both parties do for each part of the preparation, beside pads and messages.
    pub fn works(&self) -> Vec<Work> {
        self.product.works()
    }

    /// Returns what a run costs then.
    pub fn cost(&self) -> Cost {
        Cost::message(Role::Client, Masked::body_len(&[self.masked()]))
    }

    pub(super) fn masked(&self) -> Segment {
        Segment { count: self.inputs(), bits: self.product.bits }
    }

    /// The columns that images are multiplied as.
    pub(super) fn spread(&self, x: &[u64]) -> Right {
        let words = match &self.view {
            View::Positions(conv) => columns::spread(conv, x),
            View::Tiles(tiles) => tiles.spread(x),
            View::Features(_) => return Right::new(x, self.product.bits),
        };
        Right::new(&words, self.product.bits)
    }

    /// Returns the images out of shares of the products, perhaps extended; local.
    ///
    /// # Errors
    /// [`Error::Misuse`] for others than the layer's.
    pub fn results(&self, products: &Share) -> Result<Share> {
        if products.len() != self.product.outputs() || products.bits() < self.product.bits {
            return Err(Error::misuse("products that do not fit their layer"));
        }
        let words = match &self.view {
            View::Positions(conv) => columns::gather(conv, self.images, products.words()),
            View::Tiles(tiles) => tiles.gather(self.images, products.words()),
            View::Features(_) => products.words().to_vec(),
        };
        Ok(Share::new(words, products.bits()))
    }

    /// Returns the server's weights.
    ///
    /// # Errors
    /// [`Error::Misuse`] for weights that the bits do not make, and other numbers of them.
    pub fn weights(&self, weights: &[i32], choice: &WeightBits) -> Result<Weights> {
        let full = match &self.view {
            View::Positions(_) => weights.to_vec(),
            View::Tiles(tiles) | View::Features(tiles) => by_place(weights, tiles.places()),
        };
        let chosen = choice.choose(&full);
        let chosen = chosen.map_err(|at| Error::misuse(format!("weight {at} has no bits")))?;
        Weights::new(&self.product, full, &Zeroizing::new(chosen))
    }
}

/// `[places, O*I]` of `[O*I, places]`.
fn by_place(weights: &[i32], places: usize) -> Vec<i32> {
    let place = |place: usize| weights.iter().skip(place).step_by(places).copied();
    (0..places).flat_map(place).collect()
}
