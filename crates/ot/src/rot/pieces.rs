//! How many correlations and elements go together.

/// Correlations made at a time.
pub(super) const CHUNK: usize = 1 << 16;

/// Elements for which correlations are asked at a time.
pub(super) const PIECE: usize = CHUNK / 8;

/// The numbers of `count` elements of a job for which correlations are asked together.
pub(super) fn pieces(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(PIECE).map(move |done| PIECE.min(count - done))
}

/// Correlations to ask for when `left` are still to be taken in this phase.
pub(super) fn ask(left: usize) -> usize {
    left.min(CHUNK)
}
