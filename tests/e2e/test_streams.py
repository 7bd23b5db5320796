"""Several private inputs and revealed results, and states that stay shared, between two processes."""

import numpy as np
import onnxruntime
import pytest
from streams import chunks, examples_of_two, heard, recurrent, two_of_each
from tacit.compiler import Options, compile_model
from tacit.compiler.rounding import stored
from tacit.errors import MisuseError
from tacit.model import Model
from tacit.session.client import Client
from tacit.session.pair import Pair


def session_of(path):
    return onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    path = two_of_each(folder / "two.onnx")
    options = Options(rounding="exact", result="scores,boxes")
    compile_model(path, folder / "two.tacit", examples_of_two(64), options=options)
    return path, Model(folder / "two.tacit")


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream")
    path = recurrent(folder / "stream.onnx")
    options = Options(rounding="exact", states=(("state", "next"),))
    compile_model(path, folder / "stream.tacit", chunks(200), options=options)
    return path, Model(folder / "stream.tacit")


def test_several_inputs_and_results_run_by_their_names(two):
    path, model = two
    x = examples_of_two(3)
    with Pair(model).server() as server:
        prediction = Client(server.address, pin=server.pin).predict(x)
    assert [part.name for part in model.inputs] == ["a", "image"]
    assert {name: values.shape for name, values in prediction.named.items()} == {"scores": (3, 5), "boxes": (3, 3, 4)}
    flat = np.concatenate([x["a"], x["image"].reshape(3, -1)], axis=1)
    np.testing.assert_array_equal(prediction.outputs, model.simulate(flat))
    for name, expected in zip(("scores", "boxes"), session_of(path).run(["scores", "boxes"], x), strict=True):
        # Each result has a scale of its own, though one is a hundred times larger.
        assert np.abs(prediction.named[name] - expected).max() < 0.03 * np.abs(expected).max()


def test_inputs_that_do_not_fit_are_named(two):
    _, model = two
    x = examples_of_two(1)
    with Pair(model).server() as server:
        client = Client(server.address, pin=server.pin)
        with client.session(1) as session:
            with pytest.raises(MisuseError, match="inputs are `a`, `image`, not `a`"):
                session.predict({"a": x["a"]})
            with pytest.raises(MisuseError, match=r"`image` has shape \[1, 6\]; the model takes \[3, 4, 4\]"):
                session.predict({"a": x["a"], "image": x["a"]})
            assert session.predict(x).named["boxes"].shape == (1, 3, 4)


def test_a_stream_keeps_its_state_between_two_processes(stream):
    path, model = stream
    x = chunks(12)
    done = Pair(model, offline=2).run(x, None)
    assert done.report["max_error"] == 0
    expected = heard(session_of(path), x)
    values = model.real(done.prediction.outputs)
    assert np.abs(values - expected).max() < 0.04 * np.abs(expected).max()
    # One chunk after another in an open session gives the same, and a new session begins anew.
    with Pair(model).server() as server, Client(server.address, pin=server.pin).session(12) as session:
        each = np.concatenate([session.predict(chunk).outputs for chunk in x])
    np.testing.assert_array_equal(each, done.prediction.outputs)
    assert not np.array_equal(model.simulate(x[3:4]), model.simulate(x[:4])[3:])


def widths(model):
    """Inputs of each linear layer of a compiled model."""
    steps = [node["op"] for node in stored(model.path)[0]["nodes"]]
    return [step["linear"]["conv"]["in_channels"] for step in steps if "linear" in step]


def test_two_products_of_a_sum_are_one_layer(stream, two):
    # `x*w + heard*u`, and then `v`; `a*w1 + image*w2`, and then `w3` and `w4`, which read the same vector, as one.
    assert widths(stream[1]) == [5 + 8, 8]
    assert widths(two[1]) == [6 + 48, 8]


def test_commands_show_named_results_and_measure_streams(tacit, two, stream, tmp_path):
    _, model = two
    np.savez(tmp_path / "in.npz", **examples_of_two(2))
    shown = tacit("simulate", model.path, tmp_path / "in.npz", "--json").json
    assert np.array(shown["results"]["boxes"]).shape == (2, 3, 4)
    text = tacit("simulate", model.path, tmp_path / "in.npz").out
    assert "scores" in text and "boxes" in text and "3x4 numbers" in text
    path, model = stream
    np.savez(tmp_path / "x.npz", x=chunks(64))
    found = tacit("evaluate", model.path, tmp_path / "x.npz", "--model", path, "--json")
    assert found.json["agreement"] > 0.9, found.err
    refused = tacit("serve", model.path, "--listen", "127.0.0.1:0", "--batch", "2", "--once")
    assert refused.code != 0 and "without --batch" in refused.err
