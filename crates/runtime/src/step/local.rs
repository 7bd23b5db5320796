//! What a party computes on its own shares: sums, other places, constants. Shares hold
//! the tensors of a run's inputs one after another.

use std::any::Any;
use std::fmt::Debug;

use mpc::linear::winograd::Tiles;
use mpc::{Share, prime};
use ring::Modulus;
use ring::word::mask;
use wire::{Error, Result, Role};

/// A step that each party computes on its own shares, without a message.
pub trait Local: Debug + Send + Sync + Any {
    /// Returns the name of what it computes, in one or two words: `concat`.
    fn operator(&self) -> &'static str;

    /// Returns how it computes that, for people.
    fn describe(&self) -> String {
        "local".into()
    }

    /// Returns the number of elements of one input that it moves or adds, which its price counts;
    /// none by default.
    fn elements(&self) -> usize {
        0
    }

    /// Returns whether it moves elements and nothing else, so that a share of zeros stays one; not by default.
    fn moves(&self) -> bool {
        false
    }

    /// This party's share of the result. `constants` are the server's, of the step's node, where
    /// it has any.
    ///
    /// # Errors
    /// [`Error::Internal`] for a step with too few inputs, or without its constants.
    fn run(&self, role: Role, inputs: &[Share], constants: Option<&[i64]>) -> Result<Share>;
}

/// The one input of a local step, or its first.
fn first(inputs: &[Share]) -> Result<&Share> {
    let missing = || Error::Internal("a local step without input; please report it".into());
    inputs.first().ok_or_else(missing)
}

/// A tensor that an earlier step wrote together with its own.
#[derive(Debug)]
pub struct Joined {
    /// The kind of operator, as reports name it.
    pub operator: &'static str,
    /// Name of the step that wrote it.
    pub host: String,
}

impl Local for Joined {
    fn operator(&self) -> &'static str {
        self.operator
    }

    fn describe(&self) -> String {
        format!("with {}", self.host)
    }

    fn run(&self, _: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        first(inputs).cloned()
    }
}

/// Values that the client knows, as shares mod this prime.
#[derive(Debug)]
pub struct Known(pub Modulus);

impl Local for Known {
    fn operator(&self) -> &'static str {
        "enter prime"
    }

    fn run(&self, _: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        Ok(prime::known(first(inputs)?, self.0))
    }
}

/// Elements of a tensor in other places, some of them zero.
#[derive(Debug)]
pub struct Arrange {
    /// For each result the position of its value, in the tensor of one input.
    pub places: Vec<Option<usize>>,
    /// Number of values of that tensor.
    pub inputs: usize,
}

impl Local for Arrange {
    fn operator(&self) -> &'static str {
        "view"
    }

    fn elements(&self) -> usize {
        self.places.len()
    }

    fn moves(&self) -> bool {
        true
    }

    fn run(&self, _: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        Ok(arrange(first(inputs)?, &self.places, self.inputs))
    }
}

/// Tensors that become one, one after another.
#[derive(Debug)]
pub struct Concat {
    /// How many values each tensor has, of one input.
    pub lengths: Vec<usize>,
}

impl Local for Concat {
    fn operator(&self) -> &'static str {
        "concat"
    }

    fn elements(&self) -> usize {
        self.lengths.iter().sum()
    }

    fn run(&self, _: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        Ok(concat(inputs, &self.lengths))
    }
}

/// The sum with the server's constants, one for each element.
#[derive(Debug)]
pub struct Offset;

impl Local for Offset {
    fn operator(&self) -> &'static str {
        "offset"
    }

    fn run(&self, role: Role, inputs: &[Share], constants: Option<&[i64]>) -> Result<Share> {
        match (role, constants) {
            (Role::Client, _) => first(inputs).cloned(),
            (Role::Server, Some(constants)) => Ok(offset(first(inputs)?, constants)),
            (Role::Server, None) => {
                Err(Error::Internal("an offset without constants; please report it".into()))
            }
        }
    }
}

/// Sums over windows of positions.
#[derive(Debug)]
pub struct SumPool {
    /// The positions of each window, in the tensor of one input.
    pub windows: Vec<Vec<usize>>,
    /// Number of values of that tensor.
    pub inputs: usize,
    /// What the sums are reduced by; without it, the width of the shares.
    pub modulus: Option<Modulus>,
}

impl Local for SumPool {
    fn operator(&self) -> &'static str {
        "average pool"
    }

    fn elements(&self) -> usize {
        self.windows.iter().map(Vec::len).sum()
    }

    fn run(&self, _: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        Ok(pool(first(inputs)?, &self.windows, self.inputs, self.modulus))
    }
}

/// A tensor whose values stay while its shape changes.
#[derive(Debug)]
pub struct Reshape;

impl Local for Reshape {
    fn operator(&self) -> &'static str {
        "reshape"
    }

    fn moves(&self) -> bool {
        true
    }

    fn run(&self, _: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        first(inputs).cloned()
    }
}

/// Reduces shares to this width, in bits.
#[derive(Debug)]
pub struct Narrow(pub u32);

impl Local for Narrow {
    fn operator(&self) -> &'static str {
        "requantize"
    }

    fn run(&self, _: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        first(inputs)?.narrow(self.0)
    }
}

/// Features of an image's tiles, in the Winograd domain.
#[derive(Debug)]
pub struct Features(pub Tiles);

impl Local for Features {
    fn operator(&self) -> &'static str {
        "transform"
    }

    fn run(&self, _: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        Ok(self.0.features(first(inputs)?))
    }
}

/// The image out of products of features.
#[derive(Debug)]
pub struct Gather(pub Tiles);

impl Local for Gather {
    fn operator(&self) -> &'static str {
        "transform"
    }

    fn run(&self, _: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        Ok(self.0.outputs(first(inputs)?))
    }
}

/// `m0*x0 + m1*x1 + 2^(shift-1)`: the weighted sum of two tensors with the half unit that rounds
/// it by `shift` bits, which a truncation drops afterwards.
#[derive(Debug)]
pub struct WeightedSum {
    /// The factors m0 and m1.
    pub multipliers: [i64; 2],
    /// Width of the sum in bits.
    pub width: u32,
    /// Bits that are dropped afterwards.
    pub shift: u32,
}

impl WeightedSum {
    /// This party's share of the sum.
    pub(crate) fn add(&self, role: Role, inputs: &[Share]) -> Result<Share> {
        let [x, y] = inputs else {
            return Err(Error::Internal("a sum of other than two; please report it".into()));
        };
        let half = match (role, self.shift) {
            (Role::Server, 1..) => 1u64 << (self.shift - 1),
            _ => 0,
        };
        let zero = Share::new(vec![half & mask(self.width); x.len()], self.width);
        Ok(zero
            .add_scaled(&x.narrow(self.width)?, self.multipliers[0])
            .add_scaled(&y.narrow(self.width)?, self.multipliers[1]))
    }
}

impl Local for WeightedSum {
    fn operator(&self) -> &'static str {
        "sum"
    }

    fn run(&self, role: Role, inputs: &[Share], _: Option<&[i64]>) -> Result<Share> {
        self.add(role, inputs)
    }
}

/// Sums over `windows` of each tensor of `inputs` values, mod `modulus` if there is one.
fn pool(x: &Share, windows: &[Vec<usize>], inputs: usize, modulus: Option<Modulus>) -> Share {
    let add = |sum: u64, word: u64| match modulus {
        Some(modulus) => modulus.add(sum, word),
        None => sum.wrapping_add(word),
    };
    let sum = |words: &[u64], window: &Vec<usize>| {
        let values = window.iter().filter_map(|i| words.get(*i));
        values.fold(0u64, |sum, word| add(sum, *word))
    };
    let tensors = x.words().chunks(inputs.max(1));
    let sums = tensors.flat_map(|words| windows.iter().map(move |window| sum(words, window)));
    Share::new(sums.collect(), x.bits())
}

/// Elements of each tensor of `inputs` values in other places; both parties have zero
/// where there is none.
fn arrange(x: &Share, places: &[Option<usize>], inputs: usize) -> Share {
    let at = |words: &[u64], place: &Option<usize>| {
        place.and_then(|i| words.get(i)).copied().unwrap_or(0)
    };
    let tensors = x.words().chunks(inputs.max(1));
    let moved = tensors.flat_map(|words| places.iter().map(move |place| at(words, place)));
    Share::new(moved.collect(), x.bits())
}

/// Each matrix of so many rows and columns, its columns one after another.
pub(crate) fn transpose(x: &Share, [rows, columns]: [usize; 2]) -> Share {
    let matrices = x.words().chunks_exact((rows * columns).max(1));
    let turned = matrices.flat_map(|words| {
        (0..columns).flat_map(move |column| words.iter().skip(column).step_by(columns))
    });
    Share::new(turned.copied().collect(), x.bits())
}

/// Tensors one after another, for each input those of its own; `lengths` are theirs.
fn concat(parts: &[Share], lengths: &[usize]) -> Share {
    let bits = parts.first().map_or(1, Share::bits);
    let batch = parts.iter().zip(lengths).map(|(part, each)| part.len() / each.max(&1)).max();
    let mut words = Vec::with_capacity(parts.iter().map(Share::len).sum());
    for image in 0..batch.unwrap_or(0) {
        for (part, each) in parts.iter().zip(lengths) {
            words.extend(part.words().iter().skip(image * each).take(*each));
        }
    }
    Share::new(words, bits)
}

/// The server's constants added to each tensor of a run alike.
fn offset(x: &Share, constants: &[i64]) -> Share {
    let sums = x.words().iter().zip(constants.iter().cycle());
    Share::new(sums.map(|(word, c)| word.wrapping_add(*c as u64)).collect(), x.bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_input_of_a_run_is_rearranged_on_its_own() {
        let x = Share::new(vec![1, 2, 3, 4], 8);
        assert_eq!(arrange(&x, &[Some(1), None], 2).words(), [2, 0, 4, 0]);
        let y = Share::new(vec![9, 8], 8);
        assert_eq!(concat(&[x.clone(), y], &[2, 1]).words(), [1, 2, 9, 3, 4, 8]);
        assert_eq!(offset(&x, &[1, -1]).words(), [2, 1, 4, 3]);
    }
}
