"""The script that measures finetuned encoders: what it writes of each task, and what it keeps of the others."""

import json

import glue_results
import pytest
from encoders import LAYERS, weights, write

SMU = {"hidden_act": "smu", "smu": [[0.0, 1.0], [0.1, 0.5]]}
SOFTMAX = {"attention": "relu-softmax", "relu_softmax": [[1.0, 0.1], [0.5, 0.1]]}
KINDS = {"": {}, "-unified": SMU | SOFTMAX, "-activation": SMU, "-attention": SOFTMAX}
TEXTS = ["sentence1\tsentence2\tlabel", *(f"a {word} plays\tthe dog\t{i % 2}" for i, word in enumerate(("man", "cat")))]
OLD = {"machine": "P", "commit": "1" * 40, "protocol": "none"}
COLA = {"measure": "matthews", "original": 0.5, "unified": 0.25}


@pytest.fixture
def models(tmp_path, monkeypatch):
    stored, folder = weights(LAYERS, labels=2), tmp_path / "models"
    for end, config in KINDS.items():
        write(folder / f"rte{end}", stored=stored, architectures=["BertForSequenceClassification"], **config)
        result = {"epoch": 1, "options": {"seed": 1, "out": "x"}, "functions": [[0, 1]] if end else [], "dev": {}}
        (folder / f"rte{end}" / "result.json").write_text(json.dumps(result))
    for part in ("train", "dev"):
        (tmp_path / "glue").mkdir(exist_ok=True)
        (tmp_path / "glue" / f"rte_{part}.tsv").write_text("\n".join(TEXTS) + "\n")
    results = tmp_path / "comet-glue.json"
    results.write_text(json.dumps({**OLD, "commands": [], "tasks": {"cola": COLA}}))
    monkeypatch.setattr(glue_results, "RESULTS", results)
    monkeypatch.setattr(glue_results, "commit", lambda: "2" * 40)
    monkeypatch.setattr("sys.argv", ["x", "rte", "--models", str(folder), "--data", str(tmp_path), "--limit", "1"])
    return folder


@pytest.mark.usefixtures("models")
def test_each_task_names_the_commit_that_it_was_measured_with(tmp_path, capsys):
    glue_results.main()
    content = json.loads((tmp_path / "comet-glue.json").read_text())
    assert content["tasks"]["cola"] == OLD | COLA
    rte = content["tasks"]["rte"]
    assert content["commit"] == rte["commit"] == "2" * 40
    assert rte["machine"] == glue_results.machine()
    assert content["commands"] == [
        "make train-glue TASK=cola",
        "make train-glue TASK=rte ALONE=1",
        "python scripts/glue_results.py cola rte",
    ]
    assert list(rte["training"]) == ["original", "activation", "attention", "unified"]
    assert rte["training"]["unified"]["options"] == {"seed": 1}
    assert f"rte: original {rte['original']:.4f}, activation {rte['activation']:.4f}" in capsys.readouterr().out
