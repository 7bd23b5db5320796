//! How many inputs each client of a server may ask: who clients are, what they have used, and what
//! they are refused.
//!
//! ```
//! use std::time::SystemTime;
//! use tacit::budget::{Budget, Client, Error, Ledger};
//!
//! let folder = std::env::temp_dir().join(format!("tacit-budget-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! let ledger = Ledger::open(folder.join("ledger"))?;
//! let ward = Client::Token("ward-3".into());
//! let budget = Budget { total: Some(100), ..Budget::default() };
//! let charged = ledger.charge(&ward, "mnist", 100, &budget, SystemTime::now())?;
//! assert_eq!(charged.left, Some(0));
//! let refused = ledger.charge(&ward, "mnist", 1, &budget, SystemTime::now());
//! assert!(matches!(refused, Err(Error::Refused(_))));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use service::{
    Budget, Charged, Chosen, Client, Error, Ledger, Limit, NewToken, Refused, Result, Row,
    TokenEntry, Tokens, generate_token, ledger_name,
};
