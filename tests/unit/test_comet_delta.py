"""Deltas of one bit a weight: how near restored weights are, and that the same folders give the same bytes."""

import hashlib

import numpy as np
import pytest
from encoders import HIDDEN, tokens, weights, write
from safetensors.numpy import load_file
from tacit.compiler.float_model import FloatModel
from tacit.errors import MisuseError
from tacit_lab.comet import delta

QUERY = "encoder.layer.0.attention.self.query.weight"
WORDS = "embeddings.word_embeddings.weight"
CONFIG = {
    "architectures": ["BertForSequenceClassification"],
    "hidden_act": "smu",
    "smu": [[0.0, 1.0], [0.1, 0.5]],
}


def finetuned(step=0.01):
    """Weights near the base's, but a head's queries are four times as large; words stay, and there is a classifier."""
    random = np.random.default_rng(5)
    found = {name: value + step * random.standard_normal(value.shape) for name, value in weights().items()}
    found[WORDS] = weights()[WORDS]
    found[QUERY][:8] *= 4
    found |= {name: value for name, value in weights(labels=2).items() if name.startswith("classifier.")}
    return {name: value.astype(np.float32) for name, value in found.items()}


@pytest.fixture
def base(tmp_path):
    return write(tmp_path / "base")


@pytest.fixture
def tuned(tmp_path):
    stored = {name if name.startswith("classifier.") else f"bert.{name}": a for name, a in finetuned().items()}
    return write(tmp_path / "tuned", stored=stored, **CONFIG)


@pytest.mark.parametrize("scale", ["row", "matrix"])
def test_what_is_restored_is_as_near_as_one_bit_allows(base, tuned, tmp_path, scale):
    delta.write(base, tuned, tmp_path / "d.npz", scale)
    delta.restore(base, tmp_path / "d.npz", tmp_path / "back")
    ours = load_file(tmp_path / "back" / "model.safetensors")
    wanted, before = load_file(tuned / "model.safetensors"), weights()
    assert ours.keys() == wanted.keys()
    for name, value in wanted.items():
        own, was = ours[name], before.get(name.removeprefix("bert."), np.zeros_like(value))
        assert own.dtype == np.float32
        assert own.shape == value.shape
        if value.ndim == 2 and value.size >= delta.SMALL and WORDS not in name:
            # One bit of a normal number leaves sqrt(1 - 2 / pi) of it, or 0.60. Rows of the queries differ in size.
            factor = np.where(np.arange(HIDDEN) < 8, 4, 1)[:, None] if QUERY in name else 1
            most = 0.8 if QUERY in name and scale == "matrix" else 0.65
            assert np.linalg.norm(own - value) < most * np.linalg.norm(value - factor * was), name
        else:
            np.testing.assert_allclose(own, value, atol=1e-3, err_msg=name)
    np.testing.assert_array_equal(ours[f"bert.{WORDS}"], before[WORDS])
    assert (tmp_path / "back" / "config.json").read_bytes() == (tuned / "config.json").read_bytes()
    x = tokens(3, 12)
    outputs = [FloatModel(folder, (), 12)(x) for folder in (tuned, tmp_path / "back")]
    assert np.abs(outputs[1] - outputs[0]).max() < 0.1 * np.abs(outputs[0]).max()


def test_the_scale_of_a_row_is_the_mean_of_its_differences(base, tuned, tmp_path):
    delta.write(base, tuned, tmp_path / "d.npz")
    name = "encoder.layer.1.attention.output.dense.weight"
    content, before, after = delta.read(tmp_path / "d.npz"), weights()[name], finetuned()[name]
    gain = 1 + content[f"{name}.gain"].astype(np.float32)
    off = after - gain * before
    assert content[f"{name}.scale"].shape == (HIDDEN, 1)
    np.testing.assert_allclose(content[f"{name}.scale"][:, 0], np.abs(off).mean(axis=1), rtol=1e-3)
    assert content[f"{name}.sign"].nbytes == after.size / 8
    np.testing.assert_array_equal(np.unpackbits(content[f"{name}.sign"]).reshape(off.shape), off < 0)
    gains = 1 + content[f"{QUERY}.gain"][:, 0].astype(np.float32)
    np.testing.assert_allclose(gains, [4] * 8 + [1] * (HIDDEN - 8), rtol=0.02)


def test_the_same_folders_give_the_same_bytes(base, tuned, tmp_path):
    digests = set()
    for name in ("first", "second"):
        delta.write(base, tuned, tmp_path / f"{name}.npz")
        digests.add(hashlib.sha256((tmp_path / f"{name}.npz").read_bytes()).hexdigest())
    assert len(digests) == 1
    assert not list(tmp_path.glob("*.part"))
    assert not any(name.startswith(WORDS) for name in delta.read(tmp_path / "first.npz"))


def test_other_bases_and_other_files_are_refused(base, tuned, tmp_path):
    file = tmp_path / "d.npz"
    delta.write(base, tuned, file)
    other = write(tmp_path / "other", stored=weights(seed=3))
    with pytest.raises(MisuseError, match="a delta to other weights"):
        delta.restore(other, file, tmp_path / "back")
    with pytest.raises(MisuseError, match=r"holds no model\.safetensors"):
        delta.write(tmp_path, tuned, file)
    with pytest.raises(MisuseError, match="has shape"):
        delta.write(write(tmp_path / "wide", stored=weights() | {QUERY: np.zeros((2, 2), np.float32)}), tuned, file)
    beyond = write(tmp_path / "beyond", stored=finetuned() | {QUERY.replace("weight", "bias"): np.full(HIDDEN, 1e6)})
    with pytest.raises(MisuseError, match="beyond float16"):
        delta.write(base, beyond, file)
    np.savez(tmp_path / "plain.npz", x=np.zeros(3))
    (tmp_path / "text.npz").write_text("no archive")
    content = delta.read(file)
    np.savez(tmp_path / "less.npz", **{name: a for name, a in content.items() if name != f"{QUERY}.gain"})
    np.savez(tmp_path / "odd.npz", **content | {f"{QUERY}.sign": np.zeros(3, np.float32)})
    np.savez(tmp_path / "short.npz", **content | {f"{QUERY}.sign": content[f"{QUERY}.sign"][:-1]})
    for name in ("plain", "text", "less", "odd", "short", "absent"):
        with pytest.raises(MisuseError, match="is no delta"):
            delta.restore(base, tmp_path / f"{name}.npz", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_the_command_writes_and_restores(base, tuned, tmp_path, capsys):
    delta.main(["write", str(base), str(tuned), str(tmp_path / "d.npz"), "--scale", "matrix"])
    delta.main(["restore", str(base), str(tmp_path / "d.npz"), str(tmp_path / "back")])
    assert (tmp_path / "back" / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
    said = capsys.readouterr().out.splitlines()
    assert said == [
        f"wrote {tmp_path / 'd.npz'}: {(tmp_path / 'd.npz').stat().st_size} bytes",
        f"wrote {tmp_path / 'back'}",
    ]
