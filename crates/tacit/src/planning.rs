//! How plans are chosen, from the words of options.

use runtime::planner::{Conditions, Planning, Rates};
use wire::{Error, Link, Result};

use crate::session::link;

/// How steps' protocols are chosen; see [`crate::ServeOptions::protocols`].
///
/// # Errors
/// [`Error::Misuse`] for other names.
pub(crate) fn planning(
    protocols: &str,
    network: Option<&str>,
    rates: Option<Rates>,
) -> Result<Planning> {
    Ok(match (protocols, link(network)?) {
        ("auto", Some(link)) => Planning::Best(Box::new(conditions(Some(link), rates))),
        ("auto", None) | ("plain", _) => Planning::Plain,
        ("measured", _) => Planning::Measured(Box::new(rates.unwrap_or_else(Rates::reference))),
        (name, _) => Planning::Uniform(name.parse().map_err(|_| {
            let known = "auto, plain, measured, digits1 to digits8, chain, ripple, masked, circuits, \
                         rows1 to rows8, stages1 to stages8, tables1 to tables8, these with -chain or -ripple in place of the number, table, \
                         packing1 to packing4, folded1 to folded8, transfers, ahead, turns, shallow";
            Error::misuse(format!("no protocols `{name}`; there are {known}"))
        })?),
    })
}

/// This machine and a link.
pub(crate) fn conditions(link: Option<Link>, rates: Option<Rates>) -> Conditions {
    let link = link.filter(|link| *link != Link::LOOPBACK);
    Conditions { rates: rates.unwrap_or_else(Rates::reference), link }
}
