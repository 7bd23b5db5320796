//! What constructors of functions answer, and the check that they share.

/// The result of a constructor: the error is the text that says why a function is refused.
pub type Result<T> = std::result::Result<T, String>;

/// Whether `scale` can be the value of one last place: a positive, normal number.
pub(super) fn is_scale(scale: f64) -> bool {
    scale.is_normal() && scale > 0.0
}
