//! The sources of correlations that are tried.

use std::num::NonZeroU64;

use ot::Source;
use pricing::fixed::link::BITS_PER_SECOND;

use crate::plan::Settings;

/// A source, for people.
pub(super) fn name(settings: Settings) -> String {
    let bandwidth = settings.bandwidth.map_or(0, NonZeroU64::get);
    match settings.ot {
        Source::Auto => format!("auto for {} Mbit/s", bandwidth / 1_000_000),
        other => other.to_string(),
    }
}

/// The sources to try: one that was asked for, or all, the automatic one as for links of
/// several speeds, since it estimates for another machine than this.
pub(super) fn sourcing(settings: Settings) -> Vec<Settings> {
    if settings.ot != Source::Auto {
        return vec![settings];
    }
    let known = settings.bandwidth.map_or(BITS_PER_SECOND, NonZeroU64::get);
    let speeds = [known, known / 8, known.saturating_mul(8)];
    let auto =
        speeds.into_iter().map(|speed| Settings { bandwidth: NonZeroU64::new(speed), ..settings });
    let soft = [Source::SoftSpoken2, Source::SoftSpoken4, Source::SoftSpoken8];
    let named = soft.into_iter().chain([Source::Ferret]).map(|ot| Settings { ot, ..settings });
    auto.chain(named).collect()
}
