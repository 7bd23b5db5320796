//! A case: a piece of code on secrets that is measured.

use crate::run::Run;

/// A kernel, run on secrets that it takes from the [`Run`].
#[derive(Clone, Copy)]
pub struct Case {
    /// The part of the system: `rescale`, `pads`, `sampler` and so on.
    pub group: &'static str,
    /// Name of the code that is run, unique in its group.
    pub name: &'static str,
    /// Whether it is a control, which branches on secrets so that a measurement must find it.
    pub leaky: bool,
    /// Runs it.
    pub run: fn(&mut Run),
}

impl Case {
    /// A case in which nothing may be found.
    pub(crate) const fn new(group: &'static str, name: &'static str, run: fn(&mut Run)) -> Self {
        Self { group, name, leaky: false, run }
    }

    /// A case in which something must be found.
    pub(crate) const fn leaky(name: &'static str, run: fn(&mut Run)) -> Self {
        Self { group: "control", name, leaky: true, run }
    }
}
