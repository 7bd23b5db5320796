"""Linear layers that would grow too wide are compiled with a clip in between."""

import numpy as np
import onnxruntime
import pytest
from networks import Network
from tacit.compiler import Options, compile_model
from tacit.compiler.room import clipped_before, named, with_room
from tacit.errors import UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.model import Model


def test_a_chain_of_linear_layers_compiles(tmp_path):
    network = Network(("N", 16, 4, 4))
    for _ in range(7):
        network.conv((16, 16, 3, 3), pads=[1, 1, 1, 1])
    path = network.save(tmp_path)
    x = np.random.default_rng(0).uniform(-1, 1, (24, *import_onnx(path).input_shape)).astype(np.float32)
    said: list[str] = []
    compile_model(path, tmp_path / "x.tacit", x, options=Options(rounding="exact", say=said.append))
    assert any("linear layers" in line for line in said)
    model = Model(tmp_path / "x.tacit")
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {session.get_inputs()[0].name: x})[0].reshape(len(x), -1)
    difference = model.simulate(x) * model.output_scale - expected
    assert np.sqrt((difference**2).mean()) < 0.1 * expected.std()


def refused(node, what):
    error = UnsupportedError(f"node `{node}` is not supported; {what}")
    error.node = node
    return error


def two_layers(tmp_path):
    """Two layers whose results are added."""
    network = Network(("N", 4, 4, 4)).conv((4, 4, 1, 1))
    first = network.last
    network.conv((4, 4, 1, 1)).add("Add", first)
    return import_onnx(network.save(tmp_path))


def test_two_readers_share_a_clip(tmp_path):
    graph, ranges = two_layers(tmp_path), {}
    first, *readers = graph.nodes
    clip = f"{first.output}.room"
    for reader in readers:
        changed = clipped_before(graph, ranges, refused(reader.name, "needs a width of 50 bits"))
        assert changed is not None
        graph, ranges = changed
    assert [node.name for node in graph.nodes] == [first.name, clip, *(reader.name for reader in readers)]
    assert all(clip in node.inputs for node in graph.nodes[2:])


@pytest.mark.parametrize("what", ["needs a width of 50 bits", "an accumulator demands more precision than there is"])
def test_what_has_no_room_is_tried_with_a_clip(tmp_path, what):
    graph = two_layers(tmp_path)
    reader = [node for node in graph.nodes if "weight" in node.operation][1]

    def make(graph, _):
        if not any(node.name.endswith(".room") for node in graph.nodes):
            raise refused(reader.name, what)
        return len(graph.nodes)

    assert with_room(graph, {}, make, lambda _: None) == len(graph.nodes) + 1


@pytest.mark.parametrize("part", ["", ".extended", ".product.extended"])
def test_parts_of_a_layer_have_its_name_with_more_behind(tmp_path, part):
    graph = two_layers(tmp_path)
    for node in graph.nodes:
        assert named(graph, node.name + part) == named(graph, node.output + part) == node
    assert named(graph, f"other{part}") is None


def test_a_clip_that_has_no_room_itself_is_refused(tmp_path):
    graph = two_layers(tmp_path)
    reader = [node for node in graph.nodes if "weight" in node.operation][1]
    count = []

    def make(graph, _):
        count.append(len(graph.nodes))
        clips = [node.name for node in graph.nodes if node.name.endswith(".room")]
        raise refused(f"{clips[0]}.extended" if clips else reader.name, "needs a width of 50 bits")

    with pytest.raises(UnsupportedError, match="extended"):
        with_room(graph, {}, make, lambda _: None)
    assert len(count) == 2


def test_averages_are_narrowed_before_a_layer_that_has_no_room_for_their_sums(tmp_path):
    network = Network(("N", 64, 8, 8)).add("Relu").add("GlobalAveragePool").add("Flatten")
    path = network.gemm(64, 4).save(tmp_path)
    x = np.random.default_rng(0).uniform(-1, 1, (24, 64, 8, 8)).astype(np.float32)
    said: list[str] = []
    options = Options(activation_bits=12, weight_bits=12, say=said.append)
    summary = compile_model(path, tmp_path / "x.tacit", x, options=options)
    assert any("linear layers" in line for line in said)
    assert max(summary["relative_error"].values()) < 0.01
