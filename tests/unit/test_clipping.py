"""Ways to choose where the range of an activation ends."""

import numpy as np
import pytest
from networks import Network
from tacit.compiler import Options, compile_model
from tacit.compiler.clipping import Clip, parse, squared_error
from tacit.compiler.quantize import BINS, calibrate
from tacit.errors import MisuseError
from tacit.importers.onnx import import_onnx
from tacit.model import Model


def histogram(values, high):
    return np.histogram(values, BINS, (0, high))[0]


def tailed(count=100_000):
    """Values of which one in ten thousand is far from all others."""
    values = np.abs(np.random.default_rng(0).standard_normal(count)).astype(np.float32)
    values[::10_000] = 40
    return values


@pytest.mark.parametrize("text", ["minmax", "percentile:99.99", "mse", "kl"])
def test_methods_have_names(text):
    assert str(parse(text)) == text


@pytest.mark.parametrize("text", ["", "max", "mse:3", "percentile", "percentile:x", "percentile:50", "percentile:100"])
def test_other_names_are_refused(text):
    with pytest.raises(MisuseError, match="percentile"):
        parse(text)


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_least_squared_error_is_least(bits):
    values = tailed()
    counts = histogram(values, 40)

    def error(high):
        step = high / (2**bits - 1)
        return float(((np.rint(np.minimum(values, high) / step) * step - values) ** 2).sum())

    low, high = Clip("mse", bits=bits).bounds(counts, (0.0, 40.0))
    assert low == 0
    assert error(high) <= 1.01 * min(error(40 * k / 128) for k in range(4, 129))
    centres = (np.arange(BINS) + 0.5) * 40 / BINS
    assert squared_error(counts, centres, (0.0, high), bits) == pytest.approx(error(high), rel=0.05)


def test_fewer_bits_end_earlier():
    counts = histogram(tailed(), 40)
    ends = [Clip("mse", bits=bits).bounds(counts, (0.0, 40.0))[1] for bits in (3, 5, 8, 12)]
    assert ends == sorted(ends)
    assert ends[0] < 5
    assert ends[-1] == 40


def test_divergence_cuts_a_thin_tail_too():
    low, high = Clip("kl", bits=6).bounds(histogram(tailed(), 40), (0.0, 40.0))
    assert low == 0
    assert 3 < high < 40


def test_signed_ranges_keep_their_zero():
    values = np.concatenate([tailed(), -tailed() / 2])
    low, high = Clip("mse", bits=5).bounds(np.histogram(values, BINS, (-20, 40))[0], (-20.0, 40.0))
    assert low == pytest.approx(-high / 2)
    assert high < 20


@pytest.fixture
def outliers(tmp_path):
    """A network with a ReLU and a sum, and inputs with a few large values."""
    network = Network(("N", 3, 8, 8)).conv((4, 3, 3, 3)).add("Relu", name="relu").conv((4, 4, 3, 3), name="open")
    path = network.add("Flatten").gemm(64, 5).save(tmp_path)
    x = np.random.default_rng(1).standard_normal((200, 3, 8, 8)).astype(np.float32)
    x[::50] *= 12
    return path, x


def test_only_what_saturates_is_cut(outliers):
    path, x = outliers
    whole, cut = (calibrate(path, import_onnx(path), x, clip=clip).ranges for clip in (Clip(), Clip("mse", bits=4)))
    assert [name for name in whole if whole[name] != cut[name]] == ["relu.out"]


def test_few_bits_are_better_used(outliers, tmp_path):
    path, x = outliers
    errors = {}
    for clip in ("minmax", "mse"):
        compile_model(path, tmp_path / "x.tacit", x, options=Options(clip=clip, activation_bits=4))
        compiled, plain = (Model(tmp_path / "x.tacit"), x[1:50])
        compile_model(path, tmp_path / "y.tacit", x, options=Options(activation_bits=12, weight_bits=12))
        fine = Model(tmp_path / "y.tacit")
        wanted = fine.simulate(plain) * fine.output_scale
        errors[clip] = np.abs(compiled.simulate(plain) * compiled.output_scale - wanted).mean()
        assert compiled.inspect()["options"].get("clip", "minmax") == clip
    assert errors["mse"] < 0.95 * errors["minmax"]


def test_one_way_to_clip(outliers, tmp_path):
    with pytest.raises(MisuseError, match="two ways to clip"):
        compile_model(outliers[0], tmp_path / "x.tacit", options=Options(clip="mse", clip_percentile=99))
