"""preprocessor_config.json as preprocessing."""

import json

import pytest
from tacit.data.preprocess import Preprocessing
from tacit.data.processor import NAME, read
from tacit.errors import MisuseError

VIT = {"size": {"height": 224, "width": 224}, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
HALF = (0.5, 0.5, 0.5)
CASES = {
    "both sides": (VIT, Preprocessing(224, 224, scale=1 / 255, mean=HALF, std=HALF)),
    "an old size": (VIT | {"size": 224}, Preprocessing(224, 224, scale=1 / 255, mean=HALF, std=HALF)),
    "a crop": (
        VIT | {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": 224, "resample": 3},
        Preprocessing(256, 224, scale=1 / 255, mean=HALF, std=HALF, resample="bicubic"),
    ),
    "nothing": (
        {"do_resize": False, "do_rescale": False, "do_normalize": False},
        Preprocessing(),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_files_say(tmp_path, name):
    fields, expected = CASES[name]
    (tmp_path / NAME).write_text(json.dumps(fields))
    assert read(tmp_path) == expected


def test_no_file(tmp_path):
    assert read(tmp_path) is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"size": {"height": 224, "width": 196}}, "`size` is not the side of a square"),
        ({"resample": 1}, "`resample`"),
        ({"image_mean": None}, "`image_mean` and `image_std`"),
    ],
)
def test_what_is_refused(tmp_path, changed, message):
    (tmp_path / NAME).write_text(json.dumps(VIT | changed))
    with pytest.raises(MisuseError, match=message):
        read(tmp_path)


def test_files_that_are_damaged(tmp_path):
    (tmp_path / NAME).write_text("[")
    with pytest.raises(MisuseError, match="no readable JSON"):
        read(tmp_path)
