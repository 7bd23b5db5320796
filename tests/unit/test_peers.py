"""The comparison with SPU: what needs no SPU, and a small session where `.venv-peers` has one."""

import json
import sys
from pathlib import Path

import decoder_files
import exported
import gpt2_block
import numpy as np
import onnx
import onnxruntime
import ours
import pytest
import ratios
import result_tables
import run
import theirs
from decoders import GROUPS, HEADS, LAYERS, WIDTH, directory
from ratios import MODES, Cost, Ratio
from tacit.demo.digits import asset
from tacit.errors import MisuseError
from tacit.fleet.simulation.prices import Prices
from tacit_lab.heorg.sentences import BERT_BASE, states
from works import NETWORKS, OPERATORS, TOKENS, Operator, Prepared

OUTPUT = """\
[2026-01-01 00:00:00.000] [info] [api.cc:233] Link details: total send bytes 1000, recv bytes 70, send actions 3, recv actions 2
{"run": "cold", "seconds": 2.0, "opening_bytes": 8, "tcp_bytes": 1100, "cpu_seconds": 1.5, "peak_memory_bytes": 9}
[2026-01-01 00:00:01.000] [info] [api.cc:233] Link details: total send bytes 500, recv bytes 30, send actions 3, recv actions 2
{"run": "warm", "seconds": 1.0, "opening_bytes": 8, "tcp_bytes": 600, "cpu_seconds": 0.5, "peak_memory_bytes": 9}
"""  # noqa: E501
REPORT = {
    "seconds": 1.5,
    "bytes": {"client_to_server": 300, "server_to_client": 200},
    "phases": {"setup": {"seconds": 0.5, "bytes": {"client_to_server": 100, "server_to_client": 50}}},
    "cpu_seconds": {"client": 0.4, "server": 0.6},
    "peak_memory_bytes": {"client": 7, "server": 8},
}


def cost(seconds, size):
    return Cost(seconds, size, [0.1, 0.2], [1, 2])


def entry(ours_at, theirs_at, same_function=True):
    """An entry whose cold and warm costs are alike."""
    sides = {"tacit": ours_at, "spu": theirs_at}
    modes = {side: dict.fromkeys(ratios.MODES, ratios.median([at])) for side, at in sides.items()}
    return {"title": "a work", **modes, "same_function": same_function}


def test_the_median_keeps_the_seconds_of_all():
    found = ratios.median([cost(3.0, 10), cost(1.0, 30), cost(2.0, 20)])
    assert (found["seconds"], found["bytes"], found["all_seconds"]) == (2.0, 20, [3.0, 1.0, 2.0])
    assert "tcp_bytes" not in found
    assert ratios.median([cost(2.0, 10), cost(1.0, 10)])["seconds"] == 1.0


@pytest.mark.parametrize(
    ("ratio", "same", "verdict"),
    [
        (Ratio(4.0, 5.0), True, "PASS"),
        (Ratio(3.99, 50.0), True, "FAIL: traffic"),
        (Ratio(40.0, 4.99), True, "FAIL: time"),
        (Ratio(1.0, 1.0), False, "FAIL: traffic, time, result"),
        (Ratio(40.0, 50.0), False, "FAIL: result"),
    ],
)
def test_the_verdict_names_what_fails(ratio, same, verdict):
    assert ratio.verdict(same) == verdict


def test_the_table_has_a_row_for_each_mode():
    entries = {"first": entry(cost(0.5, 1_000_000), cost(4.0, 5_000_000)), "second": entry(cost(1, 10), cost(9, 50))}
    heading, *rows = ratios.rows(entries)
    assert [row[1] for row in rows] == ["cold", "warm"] * 2
    assert rows[0] == ["a work", "cold", "1", "5", "5.0", "0.5", "4", "8.0", "PASS"]
    lines = ratios.shown([heading, *rows]).splitlines()
    assert len(lines) == 5
    assert len({line.index("PASS") for line in lines[1:]}) == 1


def test_what_a_failed_peer_did_is_a_row():
    entries = {"first": {**entry(cost(0.5, 1_000_000), cost(4.0, 5_000_000)), "spu": {"error": "out of memory"}}}
    _, *rows = ratios.rows(entries)
    assert rows == [["a work", mode, "1", "-", "-", "0.5", "-", "-", "SPU failed: out of memory"] for mode in MODES]
    assert result_tables.peers_row("first", entries["first"])[1:] == ["1", "0.5", "0.5", "failed", "-", "-"]
    assert [row[1] for row in ratios.resources(entries)[1:]] == ["Tacit"]


def test_dollars_are_a_servers():
    paid = Cost(1.0, 10**9, [5.0, 3.6], [10**6, 2 * 10**6], sent=[10**9 - 10**6, 10**6])
    assert ratios.median([paid], Prices(core_hour=1.0, egress_gb=2.0))["dollars_per_thousand"] == pytest.approx(3.0)
    _, ours_at, theirs_at = ratios.resources({"first": entry(paid, cost(1, 10))})
    assert ours_at == ["a work", "Tacit", "5", "3.6", "1", "2", "0.13"]
    assert theirs_at[-1] == "-", "what it sent is not known"


def test_a_peer_that_fails_is_not_asked_again(tmp_path, monkeypatch):
    asked = []

    def crash(job):
        asked.append(job)
        raise theirs.PeerError("a party of SPU ended with -11:\nSegmentation fault")

    monkeypatch.setattr(theirs, "prepare", lambda _job, folder: folder / "job.json")
    monkeypatch.setattr(theirs, "session", crash)
    peer = run.Peer({}, tmp_path)
    assert (peer.session(), peer.session()) == ([], [])
    assert (len(asked), peer.error) == (1, "a party of SPU ended with -11: Segmentation fault")
    assert run.costs({"tacit": [], "spu": []}, peer.error)["spu"] == {"error": peer.error}


def test_a_token_of_the_block_does_not_depend_on_later_ones():
    model = gpt2_block.block(6)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = states(BERT_BASE, 6, 1)
    changed = x.copy()
    changed[:, :, 4:] += 1
    first, second = (session.run(None, {"x": value})[0] for value in (x, changed))
    np.testing.assert_allclose(first[:, :4], second[:, :4], atol=1e-4)
    assert np.abs(first[:, 4:] - second[:, 4:]).max() > 0.1


def test_results_that_differ_are_told():
    exact = np.array([[1.0, -2.0, 0.5]], np.float32)
    near = {"tacit": exact.astype(float) + 0.01, "spu": exact.reshape(-1).astype(float)}
    found = ratios.agreement(near, exact, 0.05)
    assert found["same_function"]
    assert found["max_error"] == pytest.approx({"tacit": 0.01, "spu": 0})
    far = {**near, "spu": -near["spu"]}
    assert not ratios.agreement(far, exact, 0.05)["same_function"]
    assert ratios.labelled({**near, "float": exact}, near=True)["same_function"]
    told = ratios.labelled({**far, "float": exact}, near=True)
    assert told == {"labels": {"tacit": 0, "spu": 1, "float": 0}, "same_function": False}


def test_warm_is_the_session_without_its_setup():
    found = ours.costs(REPORT)
    assert found["cold"] == Cost(1.5, 500, [0.4, 0.6], [7, 8], sent=[300, 200])
    assert found["warm"] == Cost(1.0, 350, [0.4, 0.6], [7, 8], sent=[200, 150])


def test_a_session_of_ours():
    found = ours.operator(OPERATORS["argmax"])
    assert 0 < found["warm"].seconds < found["cold"].seconds
    assert 0 < found["warm"].bytes < found["cold"].bytes


def test_bytes_are_what_the_link_says_both_parties_sent():
    party = theirs.parsed(OUTPUT)
    found = theirs.merged([party, party])
    assert (found["cold"].bytes, found["warm"].bytes) == (2 * 1008, 2 * 508)
    assert (found["cold"].tcp_bytes, found["warm"].seconds) == (2200, 1.0)


@pytest.mark.parametrize("lost", ['{"run": "warm"', "Link details: total send bytes 500"])
def test_a_run_without_statistics_is_an_error(lost):
    lines = [line for line in OUTPUT.splitlines() if lost not in line]
    with pytest.raises(RuntimeError, match="SPU reported"):
        theirs.parsed("\n".join(lines))


def test_a_network_is_exported_with_its_weights(tmp_path):
    model = onnx.load(asset("mnist.onnx"))
    exported.write(tmp_path / "mnist.npz", exported.read(model))
    with np.load(tmp_path / "mnist.npz", allow_pickle=False) as archive:
        graph = json.loads(str(archive["graph"]))
        weights = {name.removeprefix("weight:"): archive[name] for name in archive.files if name != "graph"}
    assert [node["operator"] for node in graph["nodes"][:3]] == ["Conv", "Relu", "MaxPool"]
    assert graph["ends"] == ["input", "logits"]
    assert weights["fc1.weight"].shape == (100, 256)
    used = {name for node in graph["nodes"] for name in node["inputs"]}
    assert weights.keys() <= used


def test_works_are_chosen_by_group_or_name():
    assert run.chosen(None) == [*OPERATORS, *NETWORKS, *TOKENS]
    assert run.chosen(["minilm", "operators"]) == [*OPERATORS, "minilm"]


def test_without_spu_nothing_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(theirs, "PYTHON", tmp_path / "absent")
    result = tmp_path / "result.json"
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "mnist", "--output", str(result)])
    run.main()
    said = capsys.readouterr()
    assert "skipped: SecretFlow SPU is not installed: `make .venv-peers/.packages`" in said.err
    assert not said.out
    assert not result.exists()


def test_the_table_of_a_file_needs_no_spu(tmp_path, monkeypatch, capsys):
    result = tmp_path / "result.json"
    result.write_text(json.dumps({"mnist": entry(cost(0.5, 10), cost(4.0, 30))}))
    monkeypatch.setattr(sys, "argv", ["run.py", "--show", "--output", str(result)])
    run.main()
    assert capsys.readouterr().out.count("FAIL: traffic") == 2


def test_an_operator_becomes_a_job():
    job = theirs.operator_job(OPERATORS["conv"])
    assert (job["function"], job["owner"], job["reveal"]) == ("conv", "client", False)
    assert job["shapes"][1] == (32, 16, 3, 3)
    assert "arguments" not in job
    files = Prepared(*(Path(name) for name in ("a.onnx", "a.tacit", "a.npz", "a.npy")))
    assert Path(theirs.network_job(files)["input"]).is_absolute()


@pytest.mark.skipif(theirs.version() is None, reason=theirs.INSTALL)
def test_a_session_of_spu(tmp_path):
    work = Operator("ReLU", (), "relu", ((100,),))
    found = theirs.session(theirs.prepare(theirs.operator_job(work), tmp_path))
    assert 0 < found["warm"].bytes < found["cold"].bytes < found["cold"].tcp_bytes
    got, exact = theirs.result(tmp_path)
    np.testing.assert_allclose(got, exact, atol=1e-4)
    assert exact.min() == 0 < exact.max()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The files of a small language model, whose tokens are bytes."""
    folder = tmp_path_factory.mktemp("decoder")
    return decoder_files.build(directory(folder / "tiny"), 12, 3, folder)


def test_a_token_is_the_last_of_a_context(written):
    with np.load(written.exported, allow_pickle=False) as archive:
        facts = json.loads(str(archive["facts"]))
        assert archive["x"].shape == (1, WIDTH)
        kept = [archive[name] for name in archive.files if name.startswith("kept.")]
        assert archive["w.0.q"].shape == (WIDTH, WIDTH)
    assert facts == {"layers": LAYERS, "heads": HEADS, "groups": GROUPS, "width": WIDTH // HEADS, "epsilon": 1e-5}
    assert [one.shape for one in kept] == [(GROUPS, 11, WIDTH // HEADS)] * 2 * LAYERS
    assert len(written.steps) == len(written.labels) == 3
    with pytest.raises(MisuseError, match="too short"):
        decoder_files.build(written.compiled.parent / "tiny", 3, 3, written.compiled.parent / "again")


def test_tokens_of_ours_share_what_is_prepared(written):
    found, labels = ours.tokens(written.compiled, written.steps)
    assert len(labels) == 3
    assert 0 < found["warm"].bytes < found["cold"].bytes
    assert sum(found["warm"].sent) == pytest.approx(found["warm"].bytes, abs=1)


@pytest.mark.skipif(theirs.version() is None, reason=theirs.INSTALL)
def test_a_step_of_spu_writes_what_the_float_model_does(written, tmp_path):
    theirs.session(theirs.prepare(theirs.step_job(written.exported), tmp_path))
    got, exact = theirs.result(tmp_path)
    assert got.item() == exact.item() == written.expected
