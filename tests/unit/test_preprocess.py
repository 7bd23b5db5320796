"""Pixels become inputs as the specification says, and specifications are checked."""

import json

import numpy as np
import pytest
from PIL import Image
from tacit.data.examples import load
from tacit.data.preprocess import PRESETS, Preprocessing, from_json, parse
from tacit.errors import MisuseError

PIXELS = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3), np.uint8)


def test_the_affine_part():
    made = Preprocessing(scale=1 / 255, mean=(0.1, 0.2, 0.3), std=(0.5, 0.25, 2)).inputs(PIXELS)
    expected = (PIXELS / 255 - [0.1, 0.2, 0.3]) / [0.5, 0.25, 2]
    assert (made.dtype, made.shape) == (np.float32, (2, 3, 4, 5))
    np.testing.assert_allclose(made, expected.transpose(0, 3, 1, 2), atol=1e-6)


def test_channels_in_the_other_order():
    made = Preprocessing(channel_order="BGR", mean=(1, 2, 3)).inputs(PIXELS)
    np.testing.assert_array_equal(made[:, 0], PIXELS[..., 2].astype(np.float32) - 1)
    np.testing.assert_array_equal(made[:, 2], PIXELS[..., 0].astype(np.float32) - 3)


def test_resize_keeps_the_sides_in_proportion():
    chosen = Preprocessing(resize=8)
    assert chosen.fit(Image.new("RGB", (40, 20))).shape == (8, 16, 3)
    assert chosen.fit(Image.new("RGB", (20, 41))).shape == (16, 8, 3)


def test_crop_takes_the_centre():
    image = np.arange(100, dtype=np.uint8).reshape(10, 10)
    cut = Preprocessing(crop=4, channel_order="L").fit(Image.fromarray(image))
    np.testing.assert_array_equal(cut[..., 0], image[3:7, 3:7])


def test_images_of_the_right_size_are_left_alone():
    image = Image.fromarray(PIXELS[0, :4, :4])
    np.testing.assert_array_equal(Preprocessing(resize=9, crop=4).fit(image), PIXELS[0, :4, :4])


def test_resampling_is_chosen():
    image = Image.fromarray(PIXELS[0])
    one, other = (Preprocessing(resize=2, resample=kind).fit(image) for kind in ("bilinear", "bicubic"))
    assert (one != other).any()


def test_small_images_cannot_be_cropped():
    with pytest.raises(MisuseError, match="5x4 pixels is smaller than the crop 6x6"):
        Preprocessing(crop=6).fit(Image.fromarray(PIXELS[0]))


def test_many_images_are_prepared_in_parts():
    many = np.random.default_rng(1).integers(0, 256, (600, 2, 2, 3), np.uint8)
    np.testing.assert_array_equal(PRESETS["raw"].inputs(many), many.transpose(0, 3, 1, 2).astype(np.float32))


@pytest.mark.parametrize("name", PRESETS)
def test_specifications_survive_json(name):
    assert from_json(PRESETS[name].to_json()) == PRESETS[name] == parse(name)


def test_specifications_from_a_file(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({"resize": None, "scale": 1, "mean": [128], "std": [128]}))
    assert parse(str(path)) == Preprocessing(mean=(128,), std=(128,))


BAD = {
    "resize": [0, 1.5, True, "224", 10**6],
    "crop": [-1, [224]],
    "channel_order": ["GBR", None],
    "scale": [0, "1", None, float("nan"), float("inf")],
    "mean": [[], [1, 2], 0.5, ["a"], [float("inf")]],
    "std": [[0], [1, 1, 0], [1, 2], [-1], None],
    "resample": ["nearest", 3],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_fields_that_are_wrong_are_named(name, value):
    with pytest.raises(MisuseError, match=f"`{name}`"):
        from_json(json.dumps({name: value}))


@pytest.mark.parametrize("text", ["", "[]", "3", "{", '{"size": 3}', "[" * 100_000])
def test_other_content_is_refused(text):
    with pytest.raises(MisuseError, match="preprocessing"):
        from_json(text)


def test_a_crop_fits_into_the_resized_image():
    with pytest.raises(MisuseError, match="`crop`"):
        Preprocessing(resize=10, crop=11)


def test_unknown_names_list_the_presets():
    with pytest.raises(MisuseError, match="imagenet, mobilenet"):
        parse("imagnet")


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (0, 3, 1, 2)])
def test_arrays_of_pixels_in_both_layouts(tmp_path, axes):
    path = tmp_path / "pixels.npy"
    np.save(path, PIXELS.transpose(axes))
    made = load(path, (3, 4, 5), PRESETS["raw"]).x
    np.testing.assert_array_equal(made, PIXELS.transpose(0, 3, 1, 2).astype(np.float32))
    np.save(path, PIXELS[0].transpose([axis - 1 for axis in axes[1:]]))
    np.testing.assert_array_equal(load(path, (3, 4, 5), PRESETS["raw"]).x, made[:1])


@pytest.mark.parametrize("shape", [(4, 5), (1, 4, 5), (4, 5, 1), (2, 4, 5), (2, 1, 4, 5), (2, 4, 5, 1)])
def test_grey_arrays(tmp_path, shape):
    path = tmp_path / "pixels.npy"
    grey = np.arange(np.prod(shape), dtype=np.uint8)
    np.save(path, grey.reshape(shape))
    made = load(path, (1, 4, 5), Preprocessing(channel_order="L")).x
    np.testing.assert_array_equal(made.reshape(-1), grey.astype(np.float32))


@pytest.mark.parametrize("shape", [(2, 4, 5, 4), (4, 5), (1, 2, 3, 4, 3)])
def test_arrays_without_three_channels(tmp_path, shape):
    np.save(tmp_path / "pixels.npy", np.zeros(shape, np.uint8))
    with pytest.raises(MisuseError, match="need "):
        load(tmp_path / "pixels.npy", None, PRESETS["raw"])


def test_float_arrays_are_inputs_already(tmp_path):
    x = np.full((1, 3, 4, 5), 0.5, np.float32)
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(load(tmp_path / "x.npy", (3, 4, 5), PRESETS["imagenet"]).x, x)


def test_pixels_without_preprocessing(tmp_path):
    np.save(tmp_path / "pixels.npy", PIXELS)
    with pytest.raises(MisuseError, match="--preprocess"):
        load(tmp_path / "pixels.npy", (3, 4, 5))
