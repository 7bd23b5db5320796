//! A convolution as matrix products, one for each group: every output position is a column.

use graph::Conv;
use zeroize::Zeroizing;

/// Rows that a column has for each channel of a group.
fn taps(conv: &Conv) -> usize {
    conv.kernel[0] * conv.kernel[1]
}

/// `[groups, channels, inner, columns]` of one image.
pub(super) fn sides(conv: &Conv) -> [usize; 4] {
    let rows = conv.out_channels.checked_div(conv.groups).unwrap_or(0);
    let inner = conv.group_channels().saturating_mul(taps(conv));
    [conv.groups, rows, inner, conv.out_height().saturating_mul(conv.out_width())]
}

/// What each output sees of the images `x`, `[groups, inner, columns of all images]`; zeros
/// where that is padding.
pub(super) fn spread(conv: &Conv, x: &[u64]) -> Zeroizing<Vec<u64>> {
    let (in_plane, plane) = (conv.in_height * conv.in_width, conv.out_height() * conv.out_width());
    let images = x.len() / (conv.in_channels * in_plane).max(1);
    let mut all = Zeroizing::new(vec![0; conv.in_channels * taps(conv) * images * plane]);
    for (row, to) in all.chunks_exact_mut((images * plane).max(1)).enumerate() {
        let (channel, tap) = (row / taps(conv), row % taps(conv));
        let tap = [tap / conv.kernel[1], tap % conv.kernel[1]];
        for (image, to) in to.chunks_exact_mut(plane).enumerate() {
            let from = (image * conv.in_channels + channel) * in_plane;
            copy_tap(conv, &x[from..from + in_plane], tap, to);
        }
    }
    all
}

/// What all outputs see of a channel under one tap.
fn copy_tap(conv: &Conv, from: &[u64], [row, column]: [usize; 2], to: &mut [u64]) {
    let at = |axis: usize, output: usize, tap: usize, side: usize| {
        let place = output * conv.stride[axis] + tap * conv.dilation[axis];
        place.checked_sub(conv.padding[axis]).filter(|place| *place < side)
    };
    for (y, to) in to.chunks_exact_mut(conv.out_width().max(1)).enumerate() {
        let Some(y) = at(0, y, row, conv.in_height) else { continue };
        let line = &from[y * conv.in_width..][..conv.in_width];
        for (x, to) in to.iter_mut().enumerate() {
            *to = at(1, x, column, conv.in_width).map_or(0, |x| line[x]);
        }
    }
}

/// The images, channel by channel, out of `[channels, columns of all images]`.
pub(super) fn gather(conv: &Conv, images: usize, products: &[u64]) -> Vec<u64> {
    let plane = (conv.out_height() * conv.out_width()).max(1);
    let rows: Vec<&[u64]> = products.chunks_exact((images * plane).max(1)).collect();
    let image = |image: usize| rows.iter().flat_map(move |row| &row[image * plane..][..plane]);
    (0..images).flat_map(image).copied().collect()
}
