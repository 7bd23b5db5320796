"""Pictures in, class names out: compile, simulate, run, serve and predict, evaluate."""

import numpy as np
import pytest
from networks import Network
from PIL import Image
from tacit.model import Model
from tacit.session.pair import Pair

NAMES = ["cat", "dog, any", "[bold]fox"]


@pytest.fixture(scope="module")
def folder(tacit, tmp_path_factory):
    """`small.tacit`, which takes 8x8 pictures in three classes, its source, four pictures, and them as arrays."""
    folder = tmp_path_factory.mktemp("pictures")
    network = Network().conv((4, 3, 3, 3)).add("Relu").add("Flatten").gemm(144, 3)
    source = network.save(folder)
    rows = "".join(f"{index}\tn{index}\t{name}\n" for index, name in enumerate(NAMES))
    (folder / "names.tsv").write_text("class_index\twnid\tclass_name\n" + rows)
    pixels = np.random.default_rng(5).integers(0, 256, (40, 3, 8, 8), np.uint8)
    np.savez(folder / "pixels.npz", x=pixels, y=np.arange(40) % 3)
    for index in range(4):
        Image.fromarray(pixels[index].transpose(1, 2, 0)).save(folder / f"{index}.png")
    (folder / "spec.json").write_text('{"resize": 8, "crop": 8, "scale": 0.00392156862745098}')
    options = ("--calibrate", folder / "pixels.npz", "--preprocess", folder / "spec.json", "--rounding", "exact")
    done = tacit("compile", source, "-o", folder / "small.tacit", "--labels", folder / "names.tsv", *options)
    assert done.code == 0, done.err
    return folder


def test_pictures_and_arrays_of_pixels_agree(tacit, folder):
    pictures = [folder / f"{index}.png" for index in range(4)]
    seen = tacit("simulate", folder / "small.tacit", *pictures, "--json").json
    arrays = tacit("simulate", folder / "small.tacit", folder / "pixels.npz", "--json").json
    assert seen["logits"] == arrays["logits"][:4]


def test_a_table_of_the_best_classes(tacit, folder):
    done = tacit("run", folder / "small.tacit", folder / "0.png", folder / "1.png")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    first = next(index for index, line in enumerate(lines) if "0.png" in line)
    shown = "\n".join(lines[first : first + 3])
    assert all(name in shown for name in NAMES)
    assert any("1.png" in line for line in lines)


def test_clients_prepare_pictures_themselves(tacit, folder):
    expected = tacit("simulate", folder / "small.tacit", folder / "2.png", "--json").json
    with Pair(Model(folder / "small.tacit")).server() as server:
        known = ("--server", server.address, "--pin", server.pin, "--preprocess", folder / "spec.json")
        done = tacit("predict", folder / "2.png", *known, "--json")
    assert done.json["logits"] == expected["logits"]


def test_clients_without_preprocessing_take_no_pictures(tacit, folder):
    done = tacit("predict", folder / "2.png", "--server", "127.0.0.1:1", "--plaintext")
    assert done.code == 1
    assert "--preprocess" in done.err


def test_accuracy_beside_the_float_model(tacit, folder):
    arguments = ("evaluate", folder / "small.tacit", folder / "pixels.npz", "--model", folder / "small.onnx")
    content = tacit(*arguments, "--json").json
    assert content["inputs"] == 40
    assert content["agreement"] > 0.9
    assert abs(content["float_top1"] - content["top1"]) <= 1 - content["agreement"]
    assert "labels equal to the float model's" in tacit(*arguments).out


def test_damaged_pictures(tacit, folder, tmp_path):
    path = tmp_path / "cut.png"
    path.write_bytes((folder / "0.png").read_bytes()[:60])
    done = tacit("run", folder / "small.tacit", path)
    assert (done.code, done.out) == (1, "")
    assert "cut.png" in done.err


@pytest.mark.parametrize("name", ["caffe-squeezenet", "nothing"])
def test_preprocessing_that_does_not_fit(tacit, folder, tmp_path, name):
    done = tacit(
        "compile", folder / "small.onnx", "-o", tmp_path / "x.tacit", "--preprocess", name, "--input-range", "0,1"
    )
    assert done.code == 1
    assert "error: " in done.err
    assert not (tmp_path / "x.tacit").exists()
