"""Random networks: integers near the float model, protocol equal to the integers.

`TACIT_GRAPHS=N` tries N networks instead of 200. A failure names its seed:
`grow(seed)` of `random_graphs` builds the network again.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
import pytest
from random_graphs import KINDS, REFUSED, REWRITTEN, Growth, grow
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.compiler.quantize import calibrate
from tacit.errors import UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.model import Model
from tacit.session.client import Client
from tacit.session.server import Listening, Server

GRAPHS = int(os.environ.get("TACIT_GRAPHS", "200"))
GROUPS = 20
CALIBRATION = 64
PRIVATE = 2
"""Inputs of a private run."""
WIDTHS = (8, 12)
TABLES = {"HardSwish", "Sigmoid", "Tanh"}
TABLE_BITS = 8
"""Most bits of a table's argument."""
LIMITS = ("needs a width", "-bit accumulator", "clips a tensor whose scale another operator fixes")


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(1) as pool:
        yield pool


def private(model, x, pool):
    """Outputs of a session over loopback, both parties in this process."""
    server = Server(model.path, Listening("127.0.0.1:0", plaintext=True, once=True))
    serving = pool.submit(lambda: list(server.sessions()))
    try:
        return Client(server.address, plaintext=True).predict(x).outputs
    finally:
        server.stop()
        serving.result()


def error(model, x, expected):
    """Root of the mean square of the difference from the float model."""
    return float(np.sqrt(np.mean((model.simulate(x) * model.output_scale - expected) ** 2)))


def largest(source, x):
    """The largest value of any tensor: what rounding errors are in proportion to."""
    ranges = calibrate(source, import_onnx(source), x).ranges
    return max(max(abs(low), abs(high)) for low, high in ranges.values())


def tolerance(nodes, bits):
    """What `error` may be, as a share of `largest`: each layer rounds its weights and its result, a table more."""
    if any(node.op_type in TABLES for node in nodes):
        bits = min(bits, TABLE_BITS)
    return 2 * len(nodes) * 2.0**-bits


def compiled(growth, source, folder, x, bits):
    """The model at one width, or None where it may be refused: few bits after single linear layers always fit."""
    options = Options(weight_bits=bits, activation_bits=bits, rounding="exact")
    try:
        compile_model(source, folder / "x.tacit", x, options=options)
    except UnsupportedError as refusal:
        assert any(reason in str(refusal) for reason in LIMITS)
        assert growth.run > 1 or bits > min(WIDTHS)
        return None
    return Model(folder / "x.tacit")


def check(growth, folder, pool):
    """Try one network at both widths; gives at how many it ran."""
    source = growth.network.save(folder)
    x = growth.random.uniform(-1, 1, (CALIBRATION, *growth.network.shape[1:])).astype(np.float32)
    expected, scale = FloatModel(source)(x), largest(source, x)
    ran = 0
    for bits in WIDTHS:
        model = compiled(growth, source, folder, x, bits)
        if model is None:
            continue
        assert error(model, x, expected) <= tolerance(growth.network.nodes, bits) * scale
        np.testing.assert_array_equal(private(model, x[:PRIVATE], pool), model.simulate(x[:PRIVATE]))
        ran += 1
    return ran


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_networks(group, tmp_path, pool):
    seeds = range(group, GRAPHS, GROUPS)
    ran = 0
    for seed in seeds:
        try:
            ran += check(grow(seed), tmp_path, pool)
        except BaseException as error:
            error.add_note(f"in the random network of seed {seed}")
            raise
    assert ran >= len(seeds)


@pytest.mark.parametrize("seed", range(50))
def test_every_kind_is_valid_onnx(seed):
    growth = grow(seed, KINDS | REWRITTEN | REFUSED)
    proto = growth.network.proto()
    onnx.checker.check_model(proto)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (outputs,) = session.run(None, {"x": np.ones((2, *growth.network.shape[1:]), np.float32)})
    assert outputs.shape == (2, *growth.shape)


def test_every_kind_appears():
    operators = {node.op_type for seed in range(200) for node in grow(seed).network.nodes}
    expected = {"Conv", "Relu", "Clip", "MaxPool", "AveragePool", "GlobalAveragePool", "BatchNormalization", "Add"}
    expected |= {"Gemm", "MatMul", "Flatten", "Reshape", "Concat", "Slice", "Split", "Pad", "Transpose", "Mul"}
    assert expected | TABLES | {"LeakyRelu", "ReduceMean"} == operators


@pytest.mark.parametrize("seed", range(8))
def test_rewritten_kinds_run(seed, tmp_path, pool):
    growth = Growth(seed)
    while not any(any(pads(node)) for node in growth.network.nodes):
        REWRITTEN["average_pool_border"](growth)
    assert check(growth, tmp_path, pool) >= 1


def test_refused_kinds_name_the_node(tmp_path):
    growth = Growth(0)
    REFUSED["atan"](growth)
    source = growth.network.save(tmp_path)
    with pytest.raises(UnsupportedError, match=r"atan\d+.*Atan is not supported"):
        compile_model(source, tmp_path / "x.tacit")


def pads(node):
    return [pad for attribute in node.attribute if attribute.name == "pads" for pad in attribute.ints]
