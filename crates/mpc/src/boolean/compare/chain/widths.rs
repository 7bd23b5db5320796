//! The digits of a chain that take the fewest bits.

use super::Goal;

/// Most bits of a digit.
const WIDEST: u32 = 6;
/// Bits of a pad, which masks all rows of an entry and gives the masks of states.
const PAD: u32 = 128;

/// Bits that digits take, and the width of the highest of them.
type Best = Option<(u64, u32)>;

/// The widths of the digits of a chain of `bits`, the highest first, that take the fewest bits
/// down; none where no digits have rows that fit into a pad.
pub(super) fn fewest_bits(bits: u32, goal: Goal) -> Option<Vec<u32>> {
    let mut known = vec![vec![None; PAD as usize + 1]; bits as usize + 1];
    let (mut at, mut row, mut widths) = (bits, goal.outcomes(), Vec::new());
    best(&mut known, [bits, bits, row], goal)?;
    while at > 0 {
        let (_, width) = (*known.get(at as usize)?.get(row as usize)?)??;
        widths.push(width);
        at -= width;
        row += goal.state_bits(at);
    }
    Some(widths)
}

/// The best digits for bits below `at`, the highest of which has rows of `row` bits.
fn best(known: &mut [Vec<Option<Best>>], [bits, at, row]: [u32; 3], goal: Goal) -> Best {
    let found = *known.get(at as usize)?.get(row as usize)?;
    if let Some(found) = found {
        return found;
    }
    let colour = if at == bits { goal.outcomes() } else { goal.state_bits(at) };
    let mut found: Best = None;
    for width in 1..=WIDEST.min(at) {
        let low = at - width;
        let rows = if low == 0 { 1 } else { 1 << goal.state_bits(low) };
        if rows * row + colour > PAD {
            continue;
        }
        let sent = u64::from(rows * row) * ((1 << width) - 1);
        let below = match low {
            0 => Some(u64::from(row)),
            _ => best(known, [bits, low, row + goal.state_bits(low)], goal).map(|(bits, _)| bits),
        };
        let Some(below) = below else { continue };
        if found.is_none_or(|(least, _)| sent + below < least) {
            found = Some((sent + below, width));
        }
    }
    *known.get_mut(at as usize)?.get_mut(row as usize)? = Some(found);
    found
}
