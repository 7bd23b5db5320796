//! Which element of its input each element of a view, slice or padded tensor is.

use super::geometry::View;

/// The elements of a tensor in an arrangement, with zeros where it shows nothing.
pub(super) fn shown(places: Option<Vec<Option<usize>>>, x: &[i64]) -> Vec<i64> {
    let places = places.unwrap_or_default().into_iter();
    places.map(|place| place.map_or(0, |place| x[place])).collect()
}

/// The last element that a view of `shape` shows; `None` beyond all memory.
pub(crate) fn last_viewed(view: &View, shape: &[usize]) -> Option<usize> {
    let mut last = view.start;
    for (side, stride) in shape.iter().zip(&view.strides) {
        last = side.checked_sub(1)?.checked_mul(*stride)?.checked_add(last)?;
    }
    Some(last)
}

pub(super) fn viewed(view: &View, shape: &[usize]) -> Vec<usize> {
    let axes = shape.iter().zip(&view.strides);
    axes.fold(vec![view.start], |places, (side, stride)| {
        let along = |place: usize| (0..*side).map(move |i| place + i * stride);
        places.into_iter().flat_map(along).collect()
    })
}

pub(super) fn padded(input: &[usize], before: &[usize], output: &[usize]) -> Vec<Option<usize>> {
    let axes = input.iter().zip(before).zip(output);
    axes.fold(vec![Some(0)], |places, ((side, before), out)| {
        let along = |place: Option<usize>| {
            (0..*out).map(move |i| {
                let inside = i.checked_sub(*before).filter(|i| i < side)?;
                Some(place? * side + inside)
            })
        };
        places.into_iter().flat_map(along).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_transpose_and_slice() {
        // A 2x3 matrix and its transpose, then every second column.
        let transposed = View { start: 0, strides: vec![1, 3] };
        assert_eq!(viewed(&transposed, &[3, 2]), [0, 3, 1, 4, 2, 5]);
        let columns = View { start: 1, strides: vec![3, 1] };
        assert_eq!(viewed(&columns, &[2, 2]), [1, 2, 4, 5]);
        assert_eq!(last_viewed(&columns, &[2, 2]), Some(5));
        let huge = View { start: 1, strides: vec![usize::MAX, 1] };
        assert_eq!(last_viewed(&huge, &[3, 2]), None);
    }

    #[test]
    fn zeros_surround_what_is_padded() {
        let places = padded(&[2, 2], &[1, 0], &[3, 3]);
        assert_eq!(places, [None, None, None, Some(0), Some(1), None, Some(2), Some(3), None]);
    }
}
