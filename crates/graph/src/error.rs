//! Everything that can go wrong between an imported model and a run of it.

/// Why a graph could not be built, read or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller passed something that does not fit: a shape, a range, an option.
    #[error("{0}")]
    Misuse(String),
    /// The model uses something that this version does not run.
    #[error("node `{node}`: {what}; {instead}")]
    Unsupported {
        /// Name of the node, as in the imported model.
        node: String,
        /// What it asks for.
        what: String,
        /// What the user can do about it.
        instead: String,
    },
    /// A graph breaks an invariant.
    #[error("after `{pass}`: node `{node}`: {why}")]
    Invalid {
        /// The pass that broke it, or `load` for a graph read from outside.
        pass: String,
        /// Name of the node or tensor.
        node: String,
        /// The invariant and what was found.
        why: String,
    },
    /// This program has a bug: a step met what an earlier one rules out. The caller did nothing
    /// wrong.
    #[error("node `{node}`: {why}; this is a defect of Tacit, please report it")]
    Internal {
        /// Name of the node.
        node: String,
        /// What was met.
        why: String,
    },
    /// A model file is damaged, foreign or newer than this program.
    #[error("{0}")]
    Corrupt(String),
    /// The file system refused.
    #[error("{0}")]
    Io(String),
}

impl Error {
    pub(crate) fn unsupported(node: &str, what: impl Into<String>, instead: &str) -> Self {
        Self::Unsupported { node: node.into(), what: what.into(), instead: instead.into() }
    }

    pub(crate) fn invalid(pass: &str, node: &str, why: impl Into<String>) -> Self {
        Self::Invalid { pass: pass.into(), node: node.into(), why: why.into() }
    }

    pub(crate) fn internal(node: &str, why: impl Into<String>) -> Self {
        Self::Internal { node: node.into(), why: why.into() }
    }

    /// Renames the pass of an [`Error::Invalid`]; other errors stay as they are.
    pub(crate) fn in_pass(self, name: &str) -> Self {
        match self {
            Self::Invalid { node, why, .. } => Self::Invalid { pass: name.into(), node, why },
            other => other,
        }
    }
}

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The value, or in words why there is none; whoever knows the node's name adds it.
pub type Check<T> = std::result::Result<T, String>;
