//! One step of a plan: a node and what computes it.
//!
//! The folder has what steps are made of and what they are given: computations without messages
//! ([`Local`]), protocols on shares in slices ([`Sliced`]), linear layers ([`LinearProtocol`]),
//! what these take ([`Spent`]), and the keys, weights and correlations of a run ([`Context`]).

pub mod composed;
pub mod context;
pub(crate) mod correlated;
pub mod correlations;
mod costs;
pub mod keys;
pub mod linear;
pub mod local;
pub mod memory;
pub mod preprocessed;
mod schedules;
pub mod sliced;
pub mod spent;
pub mod weights;

use graph::{Graph, Window};
use mpc::Demand;
use wire::{Cost, Error};

pub use composed::Composed;
pub use context::{Context, Endpoint, Party, Preprocessing};
pub use keys::{ClientKeys, KeyDemand, ServerKeys, SlotKeyDemand};
pub use linear::{Exchange, LinearProtocol, Preprocess, Sooner};
pub use local::Local;
pub use memory::Memory;
pub use preprocessed::{Asked, Preprocessed};
pub use sliced::{Feed, Slice, Sliced};
pub use spent::Spent;
pub use weights::{Encoded, WeightSource, Weights};

/// A named step.
#[derive(Debug)]
pub struct Step {
    /// The node's name.
    pub name: String,
    /// Index of the node in the graph; `None` for steps that belong to no node.
    pub node: Option<usize>,
    /// The tensors that it reads, in order: those of the graph by their index, others
    /// beyond.
    pub reads: Vec<usize>,
    /// The tensor that it writes.
    pub writes: usize,
    /// The protocol, layer or local computation that runs.
    pub action: Action,
}

/// What a step runs.
#[derive(Debug)]
pub enum Action {
    /// What each party computes on its own shares.
    Local(Box<dyn Local>),
    /// A protocol on shares.
    Protocol(Box<Composed>),
    /// A linear layer with its rescale.
    Linear(Box<dyn LinearProtocol>),
    /// The opening of a tensor to the client.
    Reveal(Opening),
}

/// What the client is shown at the end.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Number of values.
    pub count: usize,
    /// Width of each in bits.
    pub bits: u32,
    /// Whether they are signed.
    pub signed: bool,
}

impl From<Sliced> for Action {
    fn from(sliced: Sliced) -> Self {
        Self::Protocol(Box::new(sliced.into()))
    }
}

impl From<Composed> for Action {
    fn from(composed: Composed) -> Self {
        Self::Protocol(Box::new(composed))
    }
}

impl Action {
    /// A step that each party computes by itself.
    pub fn local(step: impl Local) -> Self {
        Self::Local(Box::new(step))
    }

    /// A linear layer.
    pub fn linear(layer: impl LinearProtocol) -> Self {
        Self::Linear(Box::new(layer))
    }
}

impl Step {
    /// The one step of a node.
    pub fn of_node(graph: &Graph, index: usize, action: Action) -> Self {
        let node = graph.nodes.get(index);
        Self {
            name: node.map(|node| node.name.clone()).unwrap_or_default(),
            node: Some(index),
            reads: node.map(|node| node.inputs.clone()).unwrap_or_default(),
            writes: node.map_or(usize::MAX, |node| node.output),
            action,
        }
    }

    /// Returns the linear layer, if it is one.
    pub fn linear(&self) -> Option<&dyn LinearProtocol> {
        match &self.action {
            Action::Linear(layer) => Some(layer.as_ref()),
            _ => None,
        }
    }

    /// Returns the protocol on shares, if it is one.
    pub fn composed(&self) -> Option<&Composed> {
        match &self.action {
            Action::Protocol(composed) => Some(composed),
            _ => None,
        }
    }

    /// Whether its protocol can be chosen: it runs on OTs or circuits, in part or whole.
    pub(crate) fn chooses(&self) -> bool {
        self.sliced().next().is_some()
    }

    /// The protocols on correlations that it runs, in order.
    pub(crate) fn sliced(&self) -> impl Iterator<Item = &Sliced> {
        let layers = self.linear().map(LinearProtocol::protocols).unwrap_or_default();
        layers.into_iter().chain(self.composed().map(|composed| &composed.sliced))
    }

    /// Returns the name of what it computes, in one or two words.
    pub fn operator(&self) -> &'static str {
        match &self.action {
            Action::Local(step) => step.operator(),
            Action::Protocol(step) => step.operator(),
            Action::Linear(layer) => layer.operator(),
            Action::Reveal(_) => "open",
        }
    }

    /// Returns the protocol, for people.
    pub fn protocol(&self) -> String {
        match &self.action {
            Action::Local(step) => step.describe(),
            Action::Protocol(step) => step.describe(),
            Action::Linear(layer) => layer.describe(),
            Action::Reveal(_) => "server's share to the client".into(),
        }
    }

    /// Width and signedness of the words that the client learns by it, if it learns any.
    pub(crate) fn reveals(&self) -> Option<(u32, bool)> {
        match &self.action {
            Action::Reveal(Opening { bits, signed, .. }) => Some((*bits, *signed)),
            Action::Linear(layer) => layer.reveals().map(|bits| (bits, true)),
            _ => None,
        }
    }

    /// Correlations that its preprocessing consumes, all parts.
    pub(crate) fn preprocessing_demand(&self) -> Demand {
        let layer = self.linear().and_then(LinearProtocol::preprocess);
        let parts = layer.map(|layer| layer.parts()).unwrap_or_default();
        parts.into_iter().map(|(demand, _)| demand).sum()
    }

    /// Correlations of its preprocessing that are made before the segment that it is in.
    pub(crate) fn mask_demand(&self) -> Demand {
        let layer = self.linear().and_then(LinearProtocol::preprocess);
        match layer.filter(|layer| layer.asks_together()) {
            Some(_) => self.preprocessing_demand(),
            None => Demand::default(),
        }
    }

    /// Returns whether it makes its correlations itself, slice by slice.
    pub fn feeds_itself(&self) -> bool {
        self.correlated() > 0 || self.sliced().any(|sliced| sliced.len() > 1)
    }

    /// Correlated OTs that it takes as they are, before all others.
    pub(crate) fn correlated(&self) -> usize {
        self.linear().map_or(0, LinearProtocol::correlated)
    }

    /// Correlations to be made before the segment that it is in.
    pub(crate) fn demand_before_run(&self) -> Demand {
        if self.feeds_itself() { Demand::default() } else { self.demand() }
    }

    /// Returns the correlations that it consumes online.
    pub fn demand(&self) -> Demand {
        self.sliced().map(Sliced::demand).sum()
    }

    /// What it costs online.
    pub fn cost(&self) -> Cost {
        self.first().cost.then(self.sliced().map(Sliced::cost).collect())
    }
}

/// For each output of a pooling layer, channel by channel, the positions it sees.
/// Padding is left out.
pub(crate) fn windows(window: &Window) -> Vec<Vec<usize>> {
    let [top, left, ..] = window.padding;
    let reach = |at: usize, stride: usize, kernel: usize, pad: usize, side: usize| {
        let start = at * stride;
        (start.max(pad)..(start + kernel).min(side + pad)).map(move |i| i - pad)
    };
    let (height, width) = (window.height, window.width);
    let count = window.channels * window.out_height() * window.out_width();
    let mut windows = Vec::with_capacity(count);
    for channel in 0..window.channels {
        for row in 0..window.out_height() {
            for column in 0..window.out_width() {
                let rows = reach(row, window.stride[0], window.kernel[0], top, height);
                let columns = reach(column, window.stride[1], window.kernel[1], left, width);
                let at = |r: usize, c: usize| (channel * height + r) * width + c;
                let mut seen = Vec::with_capacity(rows.len() * columns.len());
                rows.for_each(|r| seen.extend(columns.clone().map(|c| at(r, c))));
                windows.push(seen);
            }
        }
    }
    windows
}

/// A tensor that a step reads before it exists.
pub(crate) fn missing(tensor: usize) -> Error {
    Error::Internal(format!("tensor {tensor} is read before it is written; please report it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_leave_padding_out() {
        let window = Window {
            channels: 1,
            height: 3,
            width: 3,
            kernel: [2, 2],
            stride: [2, 2],
            padding: [1, 1, 0, 0],
        };
        assert_eq!(windows(&window), [vec![0], vec![1, 2], vec![3, 6], vec![4, 5, 7, 8]]);
    }
}
