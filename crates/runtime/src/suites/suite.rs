//! What a suite is: a row of values, not a name that code asks about.

use graph::{Graph, Node};
use wire::{Error, Result};

use super::node_context::PlanOperator;
use crate::linear::slots::Packing;
use crate::plan::options::{OptionsByStep, Products};
use crate::plan::settings::Settings;
use crate::step::{Action, Step};

/// One way to run a network: which protocols its nodes get and what they hide.
pub struct Suite {
    /// The name in models and on the command line.
    pub name: &'static str,
    /// What it does, in one line for people.
    pub summary: &'static str,
    /// The steps of a whole graph, with options for some of them.
    pub steps: fn(&Graph, Settings, &OptionsByStep) -> Result<Vec<Step>>,
    /// How single nodes are planned, of suites whose steps have options.
    pub nodes: Option<NodePlanner>,
    /// How linear layers are packed into slots, of suites that do.
    pub packing: Option<fn() -> Packing>,
    /// What leaks beside the result, for people; `None` where nothing does. Parties must agree to
    /// leakage before a session.
    pub leaks: Option<&'static str>,
    /// Whether linear layers always round exactly, whatever was asked for.
    pub rounds_exactly: bool,
    /// Whether the sizes of filters are kept from the client.
    pub hides_filters: bool,
    /// Whether all functions are computed by one inverse square root, so that there is none for
    /// GELU and softmax.
    pub unifies: bool,
    /// Whether models are integers that are never rescaled.
    pub never_rescales: bool,
    /// Whether linear layers are products by oblivious transfer.
    pub ot_products: bool,
    /// Whether a client that sends anything learns no more than its results, as far as
    /// docs/protocols/malicious-client.md argues it.
    pub secure_against_client: bool,
    /// Whether the planner may give shares other widths than those of the compiled model.
    pub plans_widths: bool,
    /// Whether a client sends its input for the first layer before anything else of a run, where the layer can be
    /// asked so.
    pub asks_sooner: bool,
}

/// How a suite plans single nodes, for planners that choose among options.
#[derive(Clone, Copy)]
pub struct NodePlanner {
    /// What runs a node, under its options.
    pub action: PlanOperator,
    /// All packings of a linear node in runs of so many inputs, and for so many runs together, first
    /// the default, then those that are folded; none of another node.
    pub packings: PackNode,
}

/// Packs a linear node for so many inputs of a run, and so many runs together.
pub(crate) type PackNode = fn(&Graph, &Node, (usize, usize)) -> Result<Vec<Packed>>;

/// A packing of a linear node, by what chooses it.
pub(crate) type Packed = (Products, Action);

impl Suite {
    /// What a suite has that says nothing else: nothing to choose, nothing special to hide.
    pub const PLAIN: Self = Self {
        name: "",
        summary: "",
        steps: |_, _, _| Err(Error::misuse("a suite without steps")),
        nodes: None,
        packing: None,
        leaks: None,
        rounds_exactly: false,
        hides_filters: false,
        unifies: false,
        never_rescales: false,
        ot_products: false,
        secure_against_client: false,
        plans_widths: false,
        asks_sooner: false,
    };

    /// How linear layers are packed into slots, if they are.
    pub fn packing(&self) -> Option<Packing> {
        self.packing.map(|packing| packing())
    }
}
