"""Finetuning of a tiny encoder: what is written is what Tacit computes, and a run that was stopped goes on."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from encoders import WORDS, write
from tacit.compiler.float_model import FloatModel
from tacit.data.corpus import load as load_texts
from tacit.data.text import Text
from tacit_lab.glue import TASKS

torch = pytest.importorskip("torch")

from tacit_lab.train import batches, bert, functions, glue, precision, ranges  # noqa: E402

ROWS = 24


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("glue"), np.random.default_rng(1)
    for part in ("train", "dev"):
        rows = ["sentence1\tsentence2\tlabel"]
        for _ in range(ROWS):
            texts = [" ".join(random.choice(WORDS, random.integers(2, 6))) for _ in range(2)]
            rows.append("\t".join((*texts, str(int("dog" in texts[0])))))
        (folder / f"mrpc_{part}.tsv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("encoder") / "tiny")


def options(model: Path, data: Path, out: Path, *more: str) -> argparse.Namespace:
    words = ["--task", "mrpc", "--model", model, "--data", data, "--out", out, "--batch", "4", "--sequence", "16"]
    return glue.parsed([str(word) for word in (*words, *more)])


def trained(options: argparse.Namespace) -> glue.Run:
    run = glue.prepare(options)
    glue.train(run)
    return run


def test_the_directory_computes_what_was_trained(encoder, data, tmp_path):
    original = trained(
        options(encoder, data, tmp_path / "own", "--original", "--epochs", "2", "--learning-rate", "1e-3")
    )
    assert original.history[1]["loss"] < original.history[0]["loss"]
    run = trained(options(tmp_path / "own", data, tmp_path / "unified", "--unified", "--epochs", "1"))
    config = json.loads((tmp_path / "unified" / "config.json").read_text())
    assert (config["hidden_act"], config["attention"]) == ("smu", "relu-softmax")
    content = load_texts(data / "mrpc_dev.tsv", TASKS["mrpc"].labels)
    text = Text((tmp_path / "unified" / "tokenizer.json").read_text(), 16, "classes")
    computed = FloatModel(tmp_path / "unified", (), 16)(text.tokens(content.inputs(True)).x)
    kept = bert.load(tmp_path / "unified", TASKS["mrpc"].labels)
    np.testing.assert_allclose(computed, glue.outputs(kept, run.dev), atol=1e-4)
    assert [entry["epoch"] for entry in run.history] == [0, 1]
    result = json.loads((tmp_path / "unified" / "result.json").read_text())
    assert set(result["ranges"][1]) == {"attention_norm", "norm", "activation", "scores", "sums"}
    assert all(part["low"] <= part["high"] for layer in result["ranges"] for part in layer.values())


def test_a_run_that_was_stopped_goes_on(encoder, data, tmp_path, monkeypatch):
    words = ("--unified", "--epochs", "3", "--seed", "5", "--resume")
    whole = trained(options(encoder, data, tmp_path / "whole", *words))
    measure, seen = glue.scores, []

    def stopped(*given):
        seen.append(given)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return measure(*given)

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(glue, "scores", stopped)
        trained(options(encoder, data, tmp_path / "parts", *words))
    parts = glue.prepare(options(encoder, data, tmp_path / "parts", *words))
    parts.resume()
    assert parts.epoch == 1
    glue.train(parts)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, parts.model.state_dict()[name]), name


def test_derivatives():
    x = torch.linspace(-3, 3, 7, dtype=torch.float64, requires_grad=True)
    numbers = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.2, 0.7)]
    assert torch.autograd.gradcheck(functions.smu, (x, *numbers))


def test_masked_scores_have_no_share():
    scores, mask = torch.randn(2, 3, 5), torch.tensor([1.0, 1, 1, 0, 0])
    shares = functions.relu_softmax(scores, mask, torch.tensor(0.5))
    assert (shares[..., 3:] == 0).all()
    assert (shares.sum(dim=-1) < 1).all()
    other = functions.relu_softmax(scores[..., :3], mask[:3], torch.tensor(0.5))
    torch.testing.assert_close(shares[..., :3], other)


def test_batches_hold_every_input_once(encoder, data):
    tokenizer = batches.Tokenizer.from_file(str(encoder / "tokenizer.json"))
    examples = batches.read(data / "mrpc_train.tsv", TASKS["mrpc"], tokenizer, 16)
    found = list(examples.shuffled(5, 3))
    assert len(found) == examples.steps(5)
    rows = sorted(row[mask.bool()].tolist() for batch in found for row, mask in zip(batch.ids, batch.mask, strict=True))
    assert rows == sorted(examples.tokens)


def test_ranges_count_tokens_only(encoder):
    model = bert.load(encoder, ("a", "b")).eval()
    model.unify()
    ids, mask = torch.randint(4, 20, (2, 8)), torch.ones(2, 8)
    mask[:, 5:] = 0
    _, seen = model(ids, mask)
    _, short = model(ids[:, :5], mask[:, :5])
    for layer, wanted in zip(
        ranges.arguments(model, seen, mask), ranges.arguments(model, short, mask[:, :5]), strict=True
    ):
        for name, values in layer.items():
            torch.testing.assert_close(values.sort().values, wanted[name].sort().values)


def test_products_have_the_width_that_the_processor_multiplies(monkeypatch):
    said = {"flags": "fpu avx512_bf16", "Features": ""}
    monkeypatch.setattr(precision, "facts", said.get)
    required = ["--task", "rte", "--out", "x", "--original"]
    assert glue.parsed(required).bfloat16
    assert not glue.parsed([*required, "--no-bfloat16"]).bfloat16
    said["flags"] = "fpu avx2"
    assert not glue.parsed(required).bfloat16
    assert glue.parsed([*required, "--bfloat16"]).bfloat16
    said["Features"] = "asimd bf16"
    assert glue.parsed(required).bfloat16
