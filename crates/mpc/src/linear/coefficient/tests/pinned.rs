//! Bytes of layers that networks have, and how they are packed.

use super::*;

/// 8-bit weights and activations, stochastic rounding, as a bench of the layer has them:
/// weights of half the largest magnitude on average.
fn layer(conv: &Conv, batch: usize) -> Layer {
    let linear = linear(conv);
    Layer::new(&linear, linear.accumulator_bits - linear.shift, batch).unwrap()
}

pub(super) fn linear(conv: &Conv) -> Linear {
    let taps = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
    let shift = 7 + taps.ilog2() / 2;
    let accumulator_bits = (taps * 64 * 128 + (1 << shift)).ilog2() + 3;
    Linear {
        conv: conv.clone(),
        accumulator_bits,
        weight_bits: WEIGHT_BITS,
        shift,
        rounding: Rounding::Stochastic,
        addend: None,
        choice: None,
        square_bits: None,
    }
}

fn depthwise(channels: usize, side: usize, stride: usize) -> Conv {
    Conv { groups: channels, ..conv([channels; 2], [side; 2], 3, stride, 1) }
}

pub(super) fn named() -> Vec<(&'static str, Conv, u64, &'static str)> {
    let matrix = Conv { in_height: 128, ..Conv::fully_connected(768, 768) };
    let resnext = Conv { groups: 32, ..conv([128; 2], [28; 2], 3, 1, 1) };
    vec![
        (
            "stem 7x7/2",
            conv([3, 64], [224; 2], 7, 2, 3),
            5_671_710,
            "tiles 4, C_w 1, M_w 1, polyphase 2x2",
        ),
        (
            "stem 3x3/2",
            conv([3, 32], [224; 2], 3, 2, 1),
            2_710_863,
            "tiles 7, C_w 1, M_w 1, polyphase 2x2",
        ),
        (
            "patches 16x16",
            conv([3, 192], [224; 2], 16, 16, 0),
            1_856_287,
            "tiles 1, C_w 10, M_w 1, polyphase 16x16",
        ),
        ("3x3 at 56", conv([64; 2], [56; 2], 3, 1, 1), 2_387_988, "tiles 1, C_w 1, M_w 1"),
        ("3x3 at 28", conv([128; 2], [28; 2], 3, 1, 1), 1_571_338, "tiles 1, C_w 2, M_w 1"),
        ("3x3 at 14", conv([256; 2], [14; 2], 3, 1, 1), 1_466_645, "tiles 1, C_w 3, M_w 3"),
        ("3x3 at 7", conv([512; 2], [7; 2], 3, 1, 1), 1_516_650, "tiles 1, C_w 6, M_w 5"),
        (
            "3x3/2 at 56",
            conv([128; 2], [56; 2], 3, 2, 1),
            3_294_740,
            "tiles 1, C_w 2, M_w 1, polyphase 2x2",
        ),
        (
            "3x3/2 at 28",
            conv([256; 2], [28; 2], 3, 2, 1),
            2_704_175,
            "tiles 1, C_w 9, M_w 1, polyphase 2x2",
        ),
        ("1x1/2 at 56", conv([256, 512], [56; 2], 1, 2, 0), 4_596_766, "tiles 1, C_w 1, M_w 2"),
        ("depthwise at 112", depthwise(32, 112, 1), 3_824_148, "tiles 7, C_w 1, M_w 1"),
        (
            "depthwise/2 at 112",
            depthwise(96, 112, 2),
            7_749_928,
            "tiles 1, C_w 1, M_w 1, polyphase 2x2",
        ),
        ("depthwise at 56", depthwise(144, 56, 1), 4_761_246, "tiles 1, C_w 1, M_w 1"),
        (
            "depthwise/2 at 56",
            depthwise(96, 56, 2),
            2_172_495,
            "tiles 1, C_w 2, M_w 1, polyphase 2x2",
        ),
        (
            "depthwise at 28",
            depthwise(192, 28, 1),
            2_054_799,
            "tiles 1, C_w 1, M_w 1, block-diagonal, 2 groups in, 1 out",
        ),
        (
            "depthwise/2 at 28",
            depthwise(192, 28, 2),
            1_723_146,
            "tiles 1, C_w 1, M_w 1, polyphase 2x2, block-diagonal, 9 groups in, 1 out",
        ),
        (
            "depthwise at 14",
            depthwise(384, 14, 1),
            1_409_098,
            "tiles 1, C_w 1, M_w 1, progression-free, 4 groups",
        ),
        (
            "depthwise/2 at 14",
            depthwise(576, 14, 2),
            1_912_623,
            "tiles 1, C_w 1, M_w 1, progression-free, 4 groups",
        ),
        (
            "depthwise at 7",
            depthwise(960, 7, 1),
            1_649_650,
            "tiles 1, C_w 1, M_w 1, progression-free, 8 groups",
        ),
        ("32 groups of 4 at 28", resnext, 1_431_562, "tiles 1, C_w 2, M_w 1"),
        ("matrix product", matrix, 3_075_092, "tiles 1, C_w 4, M_w 4"),
    ]
}

#[test]
fn bytes_of_named_layers_are_pinned() {
    let mut differ = Vec::new();
    for (name, conv, bytes, packing) in named() {
        let layer = layer(&conv, 1);
        let (got, text) = (layer.cost().bytes(), layer.describe());
        if got != bytes || !text.contains(&format!(", {packing}, ")) {
            differ.push(format!("{name}: {got} {text}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// Bytes both ways per image, for batches of 1, 4, 16 and 64.
#[test]
fn images_of_a_batch_share_ciphertexts() {
    let bytes =
        |conv: &Conv| [1, 4, 16, 64].map(|batch| layer(conv, batch).cost().bytes() / batch as u64);
    let named = [
        (
            "3x3 at 8, 64 channels",
            conv([64; 2], [8; 2], 3, 1, 1),
            [200_122, 105_690, 68_672, 54_320],
        ),
        (
            "3x3 at 16, 32 channels",
            conv([32; 2], [16; 2], 3, 1, 1),
            [200_634, 132_226, 104_544, 97_624],
        ),
        (
            "3x3 at 32, 16 channels",
            conv([16; 2], [32; 2], 3, 1, 1),
            [264_458, 209_090, 208_993, 195_161],
        ),
        ("512 to 1000", Conv::fully_connected(512, 1000), [238_754, 119_080, 60_983, 31_891]),
        ("depthwise 14, 256 channels", depthwise(256, 14, 1), [939_402, 684_931, 529_026, 529_026]),
    ];
    let found = named.each_ref().map(|(name, conv, _)| (*name, bytes(conv)));
    assert_eq!(found, named.map(|(name, _, bytes)| (name, bytes)));
}
