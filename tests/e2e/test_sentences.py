"""Text from a directory to a private answer: compile, evaluate, run, serve and ask."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import Command
from encoders import Export, weights, write
from tacit.model import Model

SEQUENCE = 8
TEXTS = ("the cat sees a fish", "a dog plays", "the man and the woman")
# A tiny network of random weights is far more sensitive than a trained one.
NEAR = 0.98


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("encoder") / "mini", pooling="mean_tokens")


@pytest.fixture(scope="module")
def model(tacit: Command, folder: Path) -> Path:
    path = folder.parent / "mini.tacit"
    texts = folder.parent / "texts.txt"
    texts.write_text("\n".join([*TEXTS, "a blue ball on the red fish and the cat", "man"]))
    done = tacit(
        "compile", folder, "-o", path, "--sequence", SEQUENCE, "--calibrate", texts, "--rounding", "exact", "--json"
    )
    assert done.code == 0, done.err
    assert done.json["text"] == str(path.with_suffix(".text"))
    return path


@pytest.fixture(scope="module")
def pairs(folder: Path) -> Path:
    path = folder.parent / "pairs.tsv"
    rows = [
        (first, second, index + 0.5)
        for index, (first, second) in enumerate(zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True))
    ]
    lines = ["sentence1\tsentence2\tscore", *("\t".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_comet_asks_for_a_finetuned_model(tacit, folder, model, tmp_path):
    texts = model.parent / "texts.txt"
    path = tmp_path / "x.tacit"
    done = tacit(
        "compile", folder, "-o", path, "--sequence", SEQUENCE, "--calibrate", texts, "--suite", "comet", "--json"
    )
    assert done.code == 1
    assert "suite `comet`" in done.err
    assert "tacit train glue" in done.err
    assert not path.exists()


def test_the_compiled_file_says_how_to_read(model):
    text = Model(model).text
    assert text is not None
    assert (text.sequence, text.pooling, text.normalise, text.pad) == (SEQUENCE, "mean", True, 0)


@pytest.mark.parametrize("mode", ["plain", "simulate", "private"])
def test_evaluate_compares_with_the_float_model(tacit, model, folder, pairs, mode):
    done = tacit("evaluate", model, pairs, "--mode", mode, "--model", folder, "--json")
    assert done.code == 0, done.err
    content = done.json
    assert (content["mode"], content["inputs"], content["pairs"]) == (mode, 3, 3)
    assert np.shape(content["embeddings"]) == (3, 32)
    np.testing.assert_allclose(np.linalg.norm(content["embeddings"], axis=1), 1, atol=1e-6)
    assert -1 <= content["spearman"] <= 1
    if mode != "plain":
        assert content["cosine_min"] > NEAR
    if mode == "private":
        assert content["max_error"] == 0


def test_run_shows_embeddings_and_cosines(tacit, model):
    done = tacit("run", model, *TEXTS)
    assert done.code == 0, done.err
    assert "Cosine of embeddings" in done.out
    assert "at most 8 tokens" in done.out
    long = tacit("simulate", model, "--text", " ".join(TEXTS), "--json")
    assert "--sequence 16" in long.err
    assert long.json["tokens"] == [15]


@contextmanager
def serving(model: Path) -> Iterator[tuple[str, ...]]:
    command = [sys.executable, "-m", "tacit", "serve", str(model), "--listen", "127.0.0.1:0", "--once", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        yield ("--server", ready["listening"], "--pin", ready["pin"])
        process.kill()


@pytest.fixture
def served(model: Path) -> Iterator[tuple[str, ...]]:
    with serving(model) as know:
        yield know


def test_a_client_needs_the_tokenizer_only(tacit, model, served, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text(TEXTS[1])
    done = tacit("predict", TEXTS[0], "--text", texts, *served, "--tokenizer", model.with_suffix(".text"), "--json")
    assert done.code == 0, done.err
    expected = tacit("simulate", model, *TEXTS[:2], "--json").json
    np.testing.assert_array_equal(done.json["logits"], expected["logits"])
    assert done.json["tokens"] == [7, 5]
    np.testing.assert_allclose(done.json["cosines"], expected["cosines"])


@pytest.fixture(scope="module")
def public(tacit: Command, folder: Path, model: Path) -> Path:
    path = model.parent / "public.tacit"
    arguments = ("--sequence", SEQUENCE, "--calibrate", model.parent / "texts.txt", "--rounding", "exact")
    done = tacit("compile", folder, "-o", path, *arguments, "--public-embedding")
    assert done.code == 0, done.err
    return path


def test_a_public_embedding_is_looked_up_by_the_client(tacit, public, model, folder, pairs):
    assert Model(public).input_shape == (33, SEQUENCE)
    content = tacit("evaluate", public, pairs, "--mode", "private", "--model", folder, "--json").json
    assert content["max_error"] == 0
    assert content["cosine_min"] > NEAR
    costs = [sum(tacit("plan", path, "--json").json["bytes"].values()) for path in (public, model)]
    assert costs[0] < costs[1]
    names = [layer["name"] for layer in tacit("plan", public, "--json").json["layers"]]
    assert not any(name.startswith("embedding") for name in names)


def test_a_client_with_a_public_embedding_needs_its_file(tacit, public, model, tmp_path):
    elsewhere = tmp_path / "x.text"
    elsewhere.write_bytes(public.with_suffix(".text").read_bytes())
    with serving(public) as know:
        done = tacit("predict", *TEXTS, *know, "--tokenizer", elsewhere, "--json")
    assert done.code == 0, done.err
    np.testing.assert_array_equal(done.json["logits"], tacit("simulate", public, *TEXTS, "--json").json["logits"])
    alone = tmp_path / "alone.tacit"
    alone.write_bytes(public.read_bytes())
    assert "alone.text does not exist" in tacit("simulate", alone, TEXTS[0]).err
    damaged = bytearray(elsewhere.read_bytes())
    damaged[-1] ^= 1
    alone.with_suffix(".text").write_bytes(damaged)
    assert "another model's embedding" in tacit("simulate", alone, TEXTS[0]).err
    alone.with_suffix(".text").write_bytes(model.with_suffix(".text").read_bytes())
    assert "no readable embedding" in tacit("simulate", alone, TEXTS[0]).err


def test_classes_have_the_names_of_the_configuration(tacit, tmp_path):
    stored = {name if name == "classifier" else f"bert.{name}": value for name, value in weights(1, labels=3).items()}
    stored = {name.replace("bert.classifier", "classifier"): value for name, value in stored.items()}
    config = {"architectures": ["BertForSequenceClassification"], "num_hidden_layers": 1}
    named = {"id2label": {"0": "bad", "1": "fair", "2": "good"}}
    folder = write(tmp_path / "classes", stored=stored, **config, **named)
    compiled = tmp_path / "classes.tacit"
    assert tacit("compile", folder, "-o", compiled, "--sequence", SEQUENCE).code == 0
    table = tmp_path / "labels.tsv"
    table.write_text("sentence\tlabel\n" + "".join(f"{text}\t0\n" for text in TEXTS))
    content = tacit("evaluate", compiled, table, "--model", folder, "--json").json
    assert content["agreement"] == 1
    public = tmp_path / "public.tacit"
    assert tacit("compile", folder, "-o", public, "--sequence", SEQUENCE, "--public-embedding").code == 0
    assert tacit("evaluate", public, table, "--model", folder, "--json").json["agreement"] == 1
    done = tacit("run", compiled, TEXTS[0], "--reveal", "label")
    assert done.code == 0, done.err
    assert any(f"{TEXTS[0]}: {label}" in done.out for label in named["id2label"].values())


def test_an_export_of_pytorch(tacit, tmp_path):
    onnx.save(Export(masks="where").proto(), tmp_path / "model.onnx")
    arguments = ("compile", tmp_path / "model.onnx", "-o", tmp_path / "x.tacit")
    assert "--sequence" in tacit(*arguments).err
    assert "tokenizer.json" in tacit(*arguments, "--sequence", SEQUENCE).err
    write(tmp_path)
    assert tacit(*arguments, "--sequence", SEQUENCE).code == 0
    assert "directory" in tacit(*arguments, "--sequence", SEQUENCE, "--public-embedding").err
    content = tacit("run", tmp_path / "x.tacit", *TEXTS, "--json").json
    assert np.shape(content["embeddings"]) == (3, 32)


def test_words_of_wrong_usage(tacit, model, folder, compiled, tmp_path):
    assert "no input" in tacit("run", model).err
    assert "--sequence" in tacit("compile", folder, "-o", tmp_path / "x.tacit").err
    assert "reads no text" in tacit("evaluate", compiled(), folder.parent / "texts.txt").err
    assert "does not exist" in tacit("run", model, "--text", tmp_path / "absent.txt").err


def test_the_demonstration(tacit, folder, tmp_path):
    done = tacit("demo-text", "--folder", tmp_path, "--model", folder)
    assert done.code == 0, done.err
    assert "Cosine of embeddings" in done.out
    assert "each of the 3 texts" in done.out
    assert (tmp_path / "minilm-32.text").is_file()
    again = tacit("demo-text", "--folder", tmp_path, "--model", folder, "--json")
    assert np.shape(again.json["cosines"]) == (3, 3)
    assert again.json["cosine_min"] > NEAR


@pytest.mark.parametrize("labels", [("same", "other"), ("similarity",)])
def test_pairs_are_read_together(tacit, tmp_path, labels):
    stored = {
        name if name.startswith("classifier") else f"bert.{name}": v for name, v in weights(1, len(labels)).items()
    }
    config = {"architectures": ["BertForSequenceClassification"], "num_hidden_layers": 1}
    folder = write(tmp_path / "pairs", stored=stored, **config, id2label={str(i): x for i, x in enumerate(labels)})
    table, column = tmp_path / "pairs.tsv", "score" if len(labels) == 1 else "label"
    wanted = (0.5, 3, 2) if len(labels) == 1 else ("same", "other", "same")
    rows = zip(TEXTS, TEXTS[::-1], wanted, strict=True)
    lines = [f"sentence1\tsentence2\t{column}", *("\t".join(map(str, row)) for row in rows)]
    table.write_text("\n".join(lines) + "\n")
    compiled = tmp_path / "pairs.tacit"
    assert tacit("compile", folder, "-o", compiled, "--sequence", 16, "--calibrate", table).code == 0
    content = tacit("evaluate", compiled, table, "--model", folder, "--json").json
    joined = "\t".join((TEXTS[0], TEXTS[2]))
    outputs = np.array(tacit("simulate", compiled, joined, "--json").json["logits"][0])
    if len(labels) == 1:
        assert {"pearson", "spearman", "float_pearson", "float_spearman"} <= content.keys()
        assert content["output"][0] == pytest.approx(outputs[0] * Model(compiled).output_scale)
        assert "agreement" not in content
        assert (
            "Spearman's rank correlation of the float model"
            in tacit("evaluate", compiled, table, "--model", folder).out
        )
    else:
        found = np.array(content["output"])
        assert content["top1"] == pytest.approx(float((found == [0, 1, 0]).mean()))
        assert {"f1", "matthews", "float_f1"} <= content.keys()
        assert content["output"][0] == outputs.argmax()
