"""The scripts that prepare data and build networks."""

import json
import re
import subprocess
import sys
from pathlib import Path

import kernel_results
import numpy as np
import onnx
import onnxruntime
import planner_duels
import planner_matrix
import prepare_data
import pytest
import random_encoders
import real_networks
import result_age
import result_tables
from onnx import TensorProto, numpy_helper
from PIL import Image
from source_run import evaluate
from tacit.compiler.float_model import FloatModel
from tacit.importers.onnx import import_onnx
from tacit_lab import random_mobilenets, random_resnets

SCRIPTS = Path(prepare_data.__file__).parent
PARAMETERS = {"resnet18": 11_689_512, "resnet50": 25_557_032}
NORMALISED = {"resnet18": 4_800, "resnet50": 26_560}
MOBILE = [("efficientnet-b0", 5_288_548, 21_008), ("mobilenetv3-small", 2_542_856, 6_056)]
"""Parameters of torchvision's networks, and how many of them are factors that folding leaves out."""


CHECKS = re.findall(
    r"^\t\.venv/bin/python scripts/(\w+\.py) --check$", (SCRIPTS.parent / "Makefile").read_text(), re.MULTILINE
)


@pytest.mark.parametrize("name", CHECKS)
def test_what_make_check_runs_needs_no_package_of_this_project(name):
    """`make check` builds no core, and `import tacit` fails without one."""
    path = SCRIPTS / name
    alone = "; ".join(
        [
            "import runpy, sys",
            "sys.modules.update(tacit=None, tacit_lab=None)",
            f"sys.path.insert(0, {str(SCRIPTS)!r})",
            f"sys.argv = [{name!r}, '--check']",
            f"runpy.run_path({str(path)!r}, run_name='__main__')",
        ]
    )
    ended = subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    "name",
    [
        "prepare_data.py",
        "random_encoders.py",
        "real_encoders.py",
        "real_networks.py",
        "result_tables.py",
        "paper_pages.py",
        "kernel_results.py",
    ],
)
def test_help(name):
    done = subprocess.run([sys.executable, SCRIPTS / name, "--help"], capture_output=True, text=True, check=True)
    assert "usage" in done.stdout
    assert subprocess.run([sys.executable, SCRIPTS / name, "--x"], capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize("module", ["random_resnets", "random_mobilenets"])
def test_help_of_random_networks(module):
    command = [sys.executable, "-m", f"tacit_lab.{module}"]
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    assert "usage" in done.stdout
    assert subprocess.run([*command, "--x"], capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize("name", PARAMETERS)
def test_resnets_are_as_large_as_the_originals(name):
    """Batch normalisation has two parameters a channel, of which folding leaves one: the bias."""
    model = random_resnets.build(name)
    count = sum(numpy_helper.to_array(tensor).size for tensor in model.graph.initializer)
    assert count == PARAMETERS[name] - NORMALISED[name]


@pytest.mark.parametrize(("name", "parameters", "normalised"), MOBILE)
def test_mobile_networks_are_as_large_as_the_originals_and_normalised(name, parameters, normalised):
    """Outputs of convolutions have mean 0 and variance 1 in each channel, for such a batch as they were made of."""
    model = random_mobilenets.build(name)
    assert sum(numpy_helper.to_array(tensor).size for tensor in model.graph.initializer) == parameters - normalised
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    names = [node.output[0] for node in convolutions if node.input[1].startswith("normal")]
    assert len(names) > 30
    model.graph.output.extend(onnx.helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None) for tensor in names)
    x = np.random.default_rng(0).standard_normal((4, 3, 224, 224)).astype(np.float32)
    for found in onnxruntime.InferenceSession(model.SerializeToString()).run(names, {"x": x}):
        np.testing.assert_allclose(found.mean(axis=(0, 2, 3)), 0, atol=1e-3)
        np.testing.assert_allclose(found.std(axis=(0, 2, 3)), 1, atol=0.05)


def delta(pixels):
    """The reversible filter of the CIFAR files."""
    coded = pixels.copy()
    coded[:, 2] -= coded[:, 1]
    coded[:, 0] -= coded[:, 1]
    coded[:, :, :, 1:] -= coded[:, :, :, :-1].copy()
    coded[:, :, 1:] -= coded[:, :, :-1].copy()
    return coded


def test_cifar_files_are_decoded(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (500, 3, 32, 32), np.uint8)
    (tmp_path / "cifar100").mkdir()
    np.savez(tmp_path / "cifar100" / "cifar100_test2k.npz", delta=delta(pixels), y=np.arange(500, dtype=np.uint8) % 100)
    test, calibration = prepare_data.cifar100(tmp_path)
    np.testing.assert_array_equal(np.concatenate([test.x, calibration.x]), pixels)
    assert (len(test.y), len(calibration.y)) == (300, 200)


def test_mnist_calibrates_on_training_images_of_all_classes(tmp_path):
    (tmp_path / "mnist").mkdir()
    parts = {part: np.full((400, 28, 28), value, np.uint8) for part, value in (("x_train", 1), ("x_test", 2))}
    labels = dict.fromkeys(("y_train", "y_test"), np.arange(400) % 10)
    np.savez(tmp_path / "mnist" / "mnist.npz", **parts, **labels)
    test, calibration = prepare_data.mnist(tmp_path)
    assert (test.x.shape, test.x.max()) == ((400, 1, 28, 28), 2)
    assert (calibration.x.max(), np.bincount(calibration.y).tolist()) == (1, [30] * 10)


@pytest.mark.parametrize("side", [224, 227])
def test_photographs(tmp_path, side):
    folder = tmp_path / "imagenet"
    for part, name in (("images", "a.jpg"), ("free_images", "b.jpg")):
        (folder / part).mkdir(parents=True)
        Image.new("RGB", (224, 224), (10, 200, 30)).save(folder / part / name)
    (folder / "labels.tsv").write_text("file\tclass_index\na.jpg\t7\n")
    (folder / "free_labels.tsv").write_text("file\taccepted_class_indices\nb.jpg\t281,282\n")
    test, calibration = prepare_data.imagenet(tmp_path, side)
    assert (test.x.shape, test.y.tolist()) == ((1, 3, side, side), [7])
    assert calibration.x.shape == (prepare_data.CROPS, 3, side, side)
    assert set(calibration.y.tolist()) == {281}
    assert abs(int(test.x[0, 1].mean()) - 200) < 5


def test_every_published_model_is_measured():
    files = {network.file for network in real_networks.NETWORKS.values() if network.trained}
    models = real_networks.DATA / "models"
    if not models.exists():
        pytest.skip(f"{models} does not exist")
    assert files == {path.name for path in models.iterdir() if ".onnx" in path.name}


def entry():
    """A row of the results with numbers that are easy to follow."""
    cost = {"bytes": {"client_to_server": 250_000, "server_to_client": 1_000_000}, "rounds": 4.0, "seconds": 0.5}
    private = {"images": 10, "labels_equal": 9, "max_error": 2, "peak_memory_bytes": {"client": 5e7, "server": 6e7}}
    return {
        "title": "A network",
        "accuracy": {"float": 0.9, "integers": 0.8, "agreement": 0.85},
        "machine": {"processor": "P", "cores": 2, "flags": ["aes"]},
        "commit": "0" * 40,
        "protocol": result_age.spoken(),
        "date": "2026-01-02",
        "private": {**private, "phases": dict.fromkeys(real_networks.PHASES, cost)},
    }


def test_the_table_follows_the_results():
    text = f"before\n{marked('networks')}\nafter\n"
    lines = result_tables.block({"resnet20": entry()})
    wanted = result_tables.rewritten(text, "networks", lines)
    assert "| A network | 90.00 % | 80.00 % | 85.00 % | 1.25 | 1.25 | 4 | 0.5 | 1 | 60 MB |" in wanted
    assert WHERE in wanted
    assert "9 of 10 images" in wanted
    assert wanted.startswith("before\n")
    assert wanted.endswith("\nafter\n")
    assert "old" not in wanted
    assert result_tables.rewritten(wanted, "networks", lines) == wanted
    with pytest.raises(SystemExit, match="needs the lines"):
        result_tables.rewritten("no markers", "networks", [])


def test_encoders_have_a_table_too():
    measured = {"cosine": {"sentences": 50, "min": 0.9931}, "spearman": {"integers": 0.9366, "float": 0.9362}}
    lines = result_tables.encoder_block({"minilm-32": entry() | measured, "layer": entry()})
    assert "| A network | 0.9931 of 50 | 0.9366 | 0.9362 | 1.25 | 1.25 | 4 | 1 | 60 MB |" in lines
    assert any(line.startswith("| A network | - | - | - | 1.25 |") for line in lines)
    assert lines[-1] == WHERE


def test_a_table_is_of_one_machine_and_one_commit():
    others = entry() | {"commit": "1" * 40 + "-dirty"}
    lines = result_tables.encoder_block({"first": entry(), "second": others, "third": entry()})
    parts = "\n".join(lines).split("\n\n")
    assert [part.count("A network") for part in parts] == [2, 0, 1, 0]
    assert parts[1] == WHERE
    assert f"commit 1111111 with local changes, protocol {result_age.spoken()}." in parts[3]


def test_suites_have_a_table_by_link():
    rows = {
        "planned": (2, 0.5),
        "plain": (1, 0.75),
        "ferret": (1, 0.625),
        "suite gala": (30, 4),
        "suite comet": (2, 0.25),
    }
    settings = {name: {"bytes": megabytes * 1e6, "seconds": seconds} for name, (megabytes, seconds) in rows.items()}
    links = {link: entry() | {"settings": settings} for link in ("loopback", "lan", "wan")}
    lines = result_tables.suites_block({"mnist": links})
    assert "| MiniONN's CNN, MNIST | lan | 2 | 0.5 | 0.625 | - | 4 | - | - | - |" in lines
    assert lines[-1] == WHERE


def test_other_systems_have_a_table():
    cost = {"cold": {"bytes": 2e6, "seconds": 3.0}, "warm": {"bytes": 1e6, "seconds": 1.5}}
    lines = result_tables.peers_block({"mnist": entry() | {"tacit": cost, "spu": cost}})
    assert "| A network | 2 | 3 | 1.5 | 2 | 3 | 1.5 |" in lines


def test_pages_that_differ_are_named(tmp_path):
    for page, blocks in result_tables.BLOCKS.items():
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / page).write_text("\n".join(map(marked, blocks)) + "\n")
    command = [sys.executable, SCRIPTS / "result_tables.py", "--root", tmp_path]
    before = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    assert before.returncode == 1
    assert before.stderr.startswith("README.md, docs/results.md: not as in")
    subprocess.run(command, check=True)
    subprocess.run([*command, "--check"], check=True)


WHERE = f"Measured on 2026-01-02, P, 2 cores (aes), commit 0000000, protocol {result_age.spoken()}."


def marked(name):
    """A block with old content."""
    return f"<!-- {name}: written by scripts/result_tables.py from bench/results -->\nold\n<!-- /{name} -->"


def test_costs_are_per_image():
    cost = real_networks.per_image({"bytes": {"client_to_server": 10}, "rounds": 7, "seconds": 3.0}, 4)
    assert cost == {"bytes": {"client_to_server": 2}, "rounds": 1.8, "seconds": 0.75}


def test_kernel_results_are_those_that_were_asked_for(tmp_path):
    for name, median in (("bfv rotate", 12.34), ("ring pack", 5)):
        folder = tmp_path / name / "new"
        folder.mkdir(parents=True)
        (folder / "benchmark.json").write_text(json.dumps({"full_id": name}))
        (folder / "estimates.json").write_text(json.dumps({"median": {"point_estimate": median}}))
    assert kernel_results.measured(tmp_path, "bfv") == {"bfv rotate": {"median_ns": 12.3}}
    assert len(kernel_results.measured(tmp_path, "")) == 2


def test_kernels_that_are_gone_are_dropped_unless_some_were_asked_for(tmp_path):
    folder = tmp_path / "criterion/bfv rotate/new"
    folder.mkdir(parents=True)
    (folder / "benchmark.json").write_text(json.dumps({"full_id": "bfv rotate"}))
    (folder / "estimates.json").write_text(json.dumps({"median": {"point_estimate": 5}}))
    output = tmp_path / "kernels.json"
    for options, names in ((["--filter", "bfv"], {"bfv rotate", "gone"}), ([], {"bfv rotate"})):
        output.write_text(json.dumps({"gone": {}}))
        script = [sys.executable, SCRIPTS / "kernel_results.py", "--criterion", tmp_path / "criterion"]
        subprocess.run([*script, "--output", output, *options], check=True)
        assert set(json.loads(output.read_text())) == names


def test_settings_that_are_far_off_or_long_run_once():
    runs = {"planned": [{"seconds": 1.0}], "near": [{"seconds": 1.9}], "far": [{"seconds": 2.1}]}
    done = [planner_matrix.is_done(runs, setting) for setting in (*runs, "new")]
    assert done == [False, False, True, False]
    assert planner_matrix.is_done({"planned": [{"seconds": 6.5}]}, "planned")


def test_random_encoder_layers_import(tmp_path):
    path = tmp_path / "layer.onnx"
    onnx.save(random_encoders.layer("minilm", 16), path)
    source = import_onnx(path)
    x = np.random.default_rng(0).standard_normal((1, 384, 16)).astype(np.float32)
    output = evaluate(source, x[0])[source.output]
    np.testing.assert_allclose(output.ravel(), FloatModel(path)(x)[0], atol=1e-4)
    assert [node.operation["op"] for node in source.nodes].count("View") == 4


def test_settings_close_to_the_plan_are_judged_round_by_round():
    rows = {name: {"seconds": seconds} for name, seconds in {"planned": 1.0, "near": 0.9, "far": 2.0}.items()}
    assert planner_duels.rivals(rows, 1.1) == ["near"]
    assert planner_duels.rivals(rows, 2.0) == ["near", "far"]
    assert planner_duels.rivals(rows, 0.5) == ["near"]
    seconds = {"planned": [1.0, 2.0, 4.0], "near": [1.0, 4.0, 4.0]}
    found = planner_duels.judged({"settings": rows}, seconds)
    assert (found["best_other"], found["over_best"]) == ("near", 1.0)
    assert found["duels"]["settings"]["near"] == {"ratio": 1.0, "seconds": 4.0}
    assert (found["duels"]["rounds"], found["duels"]["planned"]) == (3, 2.0)
    slower = planner_duels.judged({"settings": rows}, {"planned": [1.0, 1.0], "near": [4.0, 4.0]})
    assert (slower["best_other"], slower["over_best"]) == ("far", 0.5)
