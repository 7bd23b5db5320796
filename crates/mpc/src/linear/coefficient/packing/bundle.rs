//! Several groups of a grouped convolution in one polynomial.
//!
//! Group i of an input polynomial is at slot s_i, the weights of group j at slot
//! t_j, and every product x_i*w_j appears, at slot s_i + t_j. The outputs of group
//! i are those at s_i + t_i, where no other product may be. Two ways:
//!
//! * *grid*: s_i = i, and weights a multiple of the number of inputs apart, as the
//!   channels of one group are (block-diagonal weights);
//! * *free*: s_i = t_i from a set without three terms in arithmetic progression:
//!   s_j + s_k = 2*s_i then only for i = j = k (Erdos, Turan, "On some sequences of
//!   integers", 1936). It holds more groups than the grid from about nine slots on.

/// How many groups are in a polynomial and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bundle {
    /// `inputs` groups in an input polynomial, `outputs <= inputs` in a response.
    Grid { inputs: usize, outputs: usize },
    /// `count` groups in both.
    Free { count: usize },
}

impl Bundle {
    /// Each group in polynomials of its own.
    pub(super) const APART: Self = Self::Grid { inputs: 1, outputs: 1 };

    /// Bundles of `groups` groups worth pricing where polynomials have `slots` slots.
    pub(super) fn candidates(groups: usize, slots: usize) -> impl Iterator<Item = Self> {
        /// Most outputs of a grid; free bundles are better where more fit.
        const MOST_OUTPUTS: usize = 4;
        let most = slots.min(groups);
        let grids = (1..=MOST_OUTPUTS.min(most)).map(move |outputs| {
            let inputs = even(groups, most.min(slots / outputs));
            Self::Grid { inputs, outputs: even(inputs, outputs) }
        });
        let free = Self::Free { count: even(groups, most_free(most, slots)) };
        grids.chain([free]).filter(|bundle| bundle.inputs() > 1)
    }

    /// Slots that outputs and weights need.
    pub(super) fn slots(self) -> usize {
        match self {
            Self::Grid { inputs, outputs } => inputs * outputs,
            Self::Free { count } => 2 * progression_free(count, count - 1) + 1,
        }
    }

    /// Groups in an input polynomial.
    pub(super) fn inputs(self) -> usize {
        match self {
            Self::Grid { inputs, .. } => inputs,
            Self::Free { count } => count,
        }
    }

    /// Groups in a response.
    pub(super) fn outputs(self) -> usize {
        match self {
            Self::Grid { outputs, .. } => outputs,
            Self::Free { count } => count,
        }
    }

    /// Slot of input group `i`.
    pub(super) fn input_slot(self, i: usize) -> usize {
        match self {
            Self::Grid { .. } => i,
            Self::Free { count } => progression_free(count, i),
        }
    }

    /// Slot of output group `i`, in whichever response it is.
    pub(super) fn output_slot(self, i: usize) -> usize {
        match self {
            Self::Grid { inputs, outputs } => inputs - 1 + i % outputs * inputs,
            Self::Free { count } => 2 * progression_free(count, i),
        }
    }

    /// The slots of a weight polynomial.
    pub(super) fn weight_slots(self) -> impl Iterator<Item = usize> {
        let (inputs, count) = (self.inputs(), self.weights());
        (0..count).map(move |w| match self {
            Self::Grid { .. } => inputs - 1 + w / inputs * inputs - w % inputs,
            Self::Free { count } => progression_free(count, w),
        })
    }

    /// How many they are.
    pub(super) fn weights(self) -> usize {
        match self {
            Self::Grid { inputs, outputs } => inputs * outputs,
            Self::Free { count } => count,
        }
    }

    /// The group whose weights are at slot `w` for response `set`; `None` where
    /// weights between two groups would be.
    pub(super) fn group(self, set: usize, w: usize) -> Option<usize> {
        match self {
            Self::Grid { inputs, outputs } => {
                let group = w % inputs;
                (group == set * outputs + w / inputs).then_some(group)
            }
            Self::Free { .. } => Some(w),
        }
    }
}

/// The size of the largest part of `whole` cut evenly into parts of at most `most`.
fn even(whole: usize, most: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most))
}

/// The most groups up to `most` whose free bundle needs at most `slots` slots.
fn most_free(most: usize, slots: usize) -> usize {
    let (mut fits, mut above) = (1, most + 1);
    while above - fits > 1 {
        let count = fits.midpoint(above);
        match (Bundle::Free { count }).slots() <= slots {
            true => fits = count,
            false => above = count,
        }
    }
    fits
}

/// Element `i` of a set of `count` integers from 0 on, without three terms in
/// arithmetic progression. Up to 16 elements it is (nearly) the set of the smallest
/// largest element; beyond, integers without the digit 2 in base 3.
fn progression_free(count: usize, i: usize) -> usize {
    const FIVE: [usize; 5] = [0, 1, 3, 7, 8];
    const NINE: [usize; 9] = [0, 1, 5, 6, 8, 13, 14, 17, 19];
    const ELEVEN: [usize; 11] = [0, 1, 4, 6, 10, 15, 17, 18, 22, 23, 25];
    const THIRTEEN: [usize; 13] = [0, 1, 3, 7, 8, 10, 18, 21, 22, 25, 27, 30, 31];
    const FOURTEEN: [usize; 14] = [0, 1, 3, 7, 8, 12, 20, 22, 25, 26, 29, 31, 34, 35];
    let known: &[usize] = match count {
        5 => &FIVE,
        9 => &NINE,
        10 | 11 => &ELEVEN,
        12 | 13 => &THIRTEEN,
        14 => &FOURTEEN,
        _ => &[],
    };
    known.get(i).copied().unwrap_or_else(|| {
        let digits = (0..usize::BITS / 2).map(|bit| (i >> bit & 1) * 3usize.saturating_pow(bit));
        digits.fold(0, usize::saturating_add)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_product_of_two_groups_lands_on_an_output() {
        let free = (1..=40).chain([127, 128]).map(|count| Bundle::Free { count });
        let grids = (1..=6)
            .flat_map(|outputs| (outputs..=12).map(move |inputs| Bundle::Grid { inputs, outputs }));
        for bundle in free.chain(grids) {
            let weights: Vec<usize> = bundle.weight_slots().collect();
            for set in 0..bundle.inputs().div_ceil(bundle.outputs()) {
                let mine: Vec<_> = (0..weights.len())
                    .filter_map(|w| Some((bundle.group(set, w)?, weights[w])))
                    .collect();
                for (group, at) in &mine {
                    let slot = bundle.output_slot(*group);
                    assert_eq!(bundle.input_slot(*group) + at, slot);
                    assert!(slot < bundle.slots());
                    for (other, at) in &mine {
                        for i in 0..bundle.inputs() {
                            let lands = (bundle.input_slot(i) + at) % bundle.slots();
                            assert!(lands != slot || (i, other) == (*group, group), "{bundle:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn bundles_fill_their_slots_and_no_more() {
        for (slots, free) in [(3, 2), (8, 3), (18, 5), (27, 8), (51, 11), (63, 13), (81, 16)] {
            let bundles: Vec<_> = Bundle::candidates(1000, slots).collect();
            assert!(bundles.iter().all(|bundle| bundle.slots() <= slots), "{bundles:?}");
            let most = bundles.iter().map(|bundle| bundle.outputs()).max();
            assert_eq!(most, Some(1000usize.div_ceil(1000usize.div_ceil(free))), "{slots}");
        }
        assert_eq!(Bundle::candidates(1, 100).count(), 0);
        assert_eq!(Bundle::candidates(100, 1).count(), 0);
    }
}
