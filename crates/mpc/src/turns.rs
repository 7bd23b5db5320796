//! Who begins: parts of a protocol whose messages do not wait for each other may be begun by either
//! party, and a part that whoever spoke last begins takes a round less.

use wire::{Cost, Role};

/// Who spoke last after a part that costs so much, where `before` spoke last before it.
pub(crate) fn after(part: Cost, before: Role) -> Role {
    part.last.unwrap_or(before)
}
