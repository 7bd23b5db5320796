"""Picture files: kinds, sizes, damage."""

import zlib

import numpy as np
import pytest
from PIL import Image
from tacit.data import pictures
from tacit.data.examples import load, load_all, origins
from tacit.data.preprocess import PRESETS, Preprocessing
from tacit.errors import MisuseError

RAW = PRESETS["raw"]
RGB = np.random.default_rng(0).integers(0, 256, (6, 7, 3), np.uint8)


def saved(folder, image, name="a.png", **options):
    path = folder / name
    image.save(path, **options)
    return path


def test_a_picture_is_its_pixels(tmp_path):
    made = load(saved(tmp_path, Image.fromarray(RGB)), (3, 6, 7), RAW)
    np.testing.assert_array_equal(made.x[0], RGB.transpose(2, 0, 1).astype(np.float32))
    assert made.y is None


@pytest.mark.parametrize("name", ["a.jpg", "a.JPEG", "a.png"])
def test_endings(tmp_path, name):
    kind = "PNG" if name.endswith("png") else "JPEG"
    assert load(saved(tmp_path, Image.fromarray(RGB), name, format=kind), (3, 6, 7), RAW).x.shape == (1, 3, 6, 7)


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1"])
def test_other_kinds_become_rgb(tmp_path, mode):
    path = saved(tmp_path, Image.fromarray(RGB).convert(mode))
    assert pictures.pixels(path, RAW).shape == (6, 7, 3)


def test_palettes_with_transparency(tmp_path):
    path = saved(tmp_path, Image.fromarray(RGB).convert("P"), transparency=bytes(range(200)))
    assert pictures.pixels(path, RAW).shape == (6, 7, 3)


def test_grey_networks_get_grey_pictures(tmp_path):
    path = saved(tmp_path, Image.fromarray(RGB))
    assert load(path, (1, 6, 7), Preprocessing(channel_order="L")).x.shape == (1, 1, 6, 7)


def test_sixteen_bits_are_refused(tmp_path):
    path = saved(tmp_path, Image.fromarray(np.zeros((4, 4), np.uint16)))
    with pytest.raises(MisuseError, match="8 bits a channel"):
        pictures.pixels(path, RAW)


def test_pictures_are_turned_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    path = saved(tmp_path, Image.fromarray(RGB), "turned.png", exif=exif)
    np.testing.assert_array_equal(pictures.pixels(path, RAW), np.rot90(RGB, -1))


def test_damage_is_named(tmp_path):
    path = saved(tmp_path, Image.fromarray(RGB), "hurt.png")
    whole = path.read_bytes()
    for content in (b"", b"text", whole[:30], whole[: len(whole) // 2], whole[:50] + b"\0" * 9 + whole[59:]):
        path.write_bytes(content)
        with pytest.raises(MisuseError, match=r"hurt\.png"):
            pictures.pixels(path, RAW)


@pytest.mark.parametrize("side", [9000, 12_000, 60_000])
def test_bombs(tmp_path, side):
    """A header of a huge picture, with next to no data."""
    header = b"IHDR" + side.to_bytes(4) + side.to_bytes(4) + bytes([8, 2, 0, 0, 0])
    chunks = b"".join(
        (len(body) - 4).to_bytes(4) + body + zlib.crc32(body).to_bytes(4)
        for body in (header, b"IDAT" + zlib.compress(bytes(100)), b"IEND")
    )
    path = tmp_path / "bomb.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
    with pytest.raises(MisuseError, match="more than 67108864 pixels"):
        pictures.pixels(path, RAW)


def test_a_picture_under_a_wrong_name(tmp_path):
    path = saved(tmp_path, Image.fromarray(RGB), "a.gif")
    with pytest.raises(MisuseError, match=r"b\.png is no PNG or JPEG"):
        pictures.pixels(path.rename(tmp_path / "b.png"), RAW)


def test_absent_pictures_and_folders(tmp_path):
    with pytest.raises(MisuseError, match="does not exist"):
        pictures.pixels(tmp_path / "a.png", RAW)
    (tmp_path / "b.png").mkdir()
    with pytest.raises(MisuseError, match="not a regular file"):
        pictures.pixels(tmp_path / "b.png", RAW)


def test_pictures_need_a_preprocessing(tmp_path):
    with pytest.raises(MisuseError, match="--preprocess"):
        load(saved(tmp_path, Image.fromarray(RGB)), (3, 6, 7))


def test_several_files(tmp_path):
    paths = [saved(tmp_path, Image.fromarray(RGB), name) for name in ("a.png", "b.png")]
    np.save(tmp_path / "c.npy", np.zeros((2, 3, 6, 7), np.float32))
    assert load_all([*paths, tmp_path / "c.npy"], (3, 6, 7), RAW).x.shape == (4, 3, 6, 7)
    assert load_all(paths, None, RAW).x.shape == (2, 3, 6, 7)
    assert origins(paths, 2) == ["a.png", "b.png"]
    assert origins(paths[:1], 2) == ["input 0", "input 1"]


def test_several_files_of_different_shapes(tmp_path):
    paths = [saved(tmp_path, Image.fromarray(RGB[:side]), f"{side}.png") for side in (5, 6)]
    with pytest.raises(MisuseError, match=r"6\.png has shape"):
        load_all(paths, None, RAW)


def test_labels_of_several_files(tmp_path):
    for name in ("a", "b"):
        np.savez(tmp_path / f"{name}.npz", x=np.zeros((2, 4), np.float32), y=np.arange(2))
    assert load_all([tmp_path / "a.npz", tmp_path / "b.npz"], (4,)).y.tolist() == [0, 1, 0, 1]
