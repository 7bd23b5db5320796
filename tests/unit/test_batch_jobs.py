"""Jobs of many inputs: data sets, the file of results, and sessions that are tried again."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from tacit.batch import dataset as data
from tacit.batch import job, pools
from tacit.batch.dataset import Chunk, Item
from tacit.batch.results import Results, Row
from tacit.batch.worker import Done, Sessions, Worker, copied
from tacit.errors import BusyError, MisuseError, RefusedError, TransportError
from tacit.session.client import Client

HEADER = {"model": "m", "graph_digest": "d", "reveal": "output", "labels": []}
CLIENT = Client("127.0.0.1:1", plaintext=True)


def inputs(count, shape=(2,)):
    return np.arange(count * int(np.prod(shape)), dtype=np.float32).reshape(count, *shape)


def test_every_kind_of_data_set_gives_the_same_inputs():
    x = inputs(3)
    kinds = [x, list(x), (row for row in x), [(str(at), row) for at, row in enumerate(x)], dict(enumerate(x))]
    for given in kinds:
        found = list(data.items(given))
        assert [item.id for item in found] == ["0", "1", "2"]
        assert np.array_equal(np.stack([item.x for item in found]), x)


def test_inputs_that_are_none_are_refused():
    with pytest.raises(MisuseError, match="two inputs have the id `a`"):
        list(data.items([("a", inputs(1)[0]), ("a", inputs(1)[0])]))
    with pytest.raises(MisuseError, match="float32"):
        list(data.items(np.zeros((2, 2))))
    with pytest.raises(MisuseError, match="no data set"):
        list(data.items(7))
    with pytest.raises(MisuseError, match="at least one"):
        Sessions(workers=0)


def test_chunks_are_full_and_of_one_shape():
    shapes = [(2,), (2,), (2,), (3,), (2,)]
    found = list(data.chunks([Item(str(at), np.zeros(shape, np.float32)) for at, shape in enumerate(shapes)], 2))
    assert [[item.id for item in chunk.items] for chunk in found] == [["0", "1"], ["2"], ["3"], ["4"]]
    assert found[0].x.shape == (2, 2)


def test_digests_tell_inputs_and_shapes_apart():
    x = inputs(1, (4,))[0]
    digests = {Item("a", each).digest for each in (x, x.reshape(2, 2), x + 1)}
    assert len(digests) == 3
    assert Item("b", x.copy()).digest in digests


def test_results_go_on_after_a_torn_line(tmp_path):
    path = tmp_path / "results.jsonl"
    with Results(path) as results:
        results.add(HEADER, [Row("a", "1", [1, 2]), Row("b", "2", [3, 4])])
        results.add(HEADER, [Row("a", "1", [9, 9])])
        with pytest.raises(MisuseError, match="another job"):
            Results(path)
    whole = path.read_bytes()
    assert whole.count(b"\n") == 3
    for cut in (1, 5, 20):
        path.write_bytes(whole + b'{"id": "c", "input": "3", "output": [5]}'[:cut])
        with Results(path) as results:
            assert results.rows == {"a": Row("a", "1", [1, 2]), "b": Row("b", "2", [3, 4])}
            assert results.has("a", "1")
            assert not results.has("c", "3")
            with pytest.raises(MisuseError, match="another input"):
                results.has("b", "1")
        assert path.read_bytes() == whole
    assert path.stat().st_mode & 0o777 == 0o600


def test_results_of_something_else_are_refused(tmp_path):
    path = tmp_path / "results.jsonl"
    with Results(path) as results:
        results.add(HEADER, [Row("a", "1", [1])])
        with pytest.raises(MisuseError, match="another model"):
            results.add({**HEADER, "graph_digest": "e"}, [Row("b", "2", [2])])
    for content in ("no json\n", '{"format": 9}\n', '{"format": 1}\n{"id": "a"}\n'):
        path.write_text(content)
        with pytest.raises(MisuseError, match=r"name another file|format 9"):
            Results(path)
        assert path.read_text() == content


def prediction(x):
    report = {"plan": {"graph": {}}, "model": "m", "graph_digest": "d", "reveal": "label"}
    costs = {"bytes": {"client_to_server": 1, "server_to_client": 2}, "rounds": 3, "seconds": 0.1}
    outputs = x[:, :1].astype(np.int64)
    return SimpleNamespace(outputs=outputs, report=report | costs, reveals_logits=False, names=["zero", "one"])


def worker_that(monkeypatch, fates, tries=3):
    """A worker whose sessions end as `fates` say, and the pauses it makes."""
    pauses, left = [], iter(fates)

    def predict(_, x):
        fate = next(left, None)
        if fate is not None:
            raise fate
        return prediction(x)

    monkeypatch.setattr(Client, "predict", predict)
    return Worker(copied(CLIENT), tries, pauses.append), pauses


CHUNK = Chunk(tuple(Item(str(at), x) for at, x in enumerate(inputs(3))))


def test_a_session_that_breaks_off_is_tried_again_as_a_whole(monkeypatch):
    worker, pauses = worker_that(monkeypatch, [TransportError("gone"), BusyError("full")])
    done = worker(CHUNK)
    assert (done.tries, done.failed) == (3, None)
    assert [row.output for row in done.rows] == [[0], [2], [4]]
    assert [row.id for row in done.rows] == ["0", "1", "2"]
    assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1.0


def test_sessions_that_cannot_succeed_are_given_up(monkeypatch):
    worker, pauses = worker_that(monkeypatch, [TransportError("gone")] * 3)
    assert worker(CHUNK) == Done(CHUNK, 3, failed="gone")
    assert len(pauses) == 2
    worker, pauses = worker_that(monkeypatch, [MisuseError("two values")])
    assert worker(CHUNK).failed == "two values"
    worker, pauses = worker_that(monkeypatch, [RefusedError("no token")])
    with pytest.raises(RefusedError):
        worker(CHUNK)
    assert pauses == []


def test_a_job_goes_on_where_it_was(tmp_path, monkeypatch):
    path, x = tmp_path / "results.jsonl", inputs(10)
    asked = []

    def predict(_, part):
        asked.append(len(part))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return prediction(part)

    monkeypatch.setattr(Client, "predict", predict)
    with pytest.raises(KeyboardInterrupt):
        job.map_private(CLIENT, x, results=path, inputs_per_session=2, workers=1)
    # The session that was handed out ahead may have run after that.
    before = len(path.read_text().splitlines()) - 1
    assert before in {4, 6}
    asked[:] = [0, 0, 0]
    seen = []
    mapped = job.map_private(
        CLIENT, x, results=path, inputs_per_session=2, workers=2, progress=lambda *both: seen.append(both)
    )
    assert sum(asked) == 10 - before
    assert mapped.ids == [str(at) for at in range(10)]
    assert mapped.classes.tolist() == x[:, 0].astype(int).tolist()
    assert (mapped.report["resumed"], mapped.report["inputs"], mapped.failed) == (before, 10, {})
    assert seen[-1] == (10, 10)
    again = job.map_private(CLIENT, x, results=path)
    assert (again.report["sessions"], again.report["resumed"]) == (0, 10)
    assert np.array_equal(again.outputs, mapped.outputs)
    with pytest.raises(MisuseError, match="another input"):
        job.map_private(CLIENT, x + 1, results=path)
    assert [json.loads(line).get("id") for line in path.read_text().splitlines()].count("3") == 1


def test_inputs_that_fail_are_named_and_tried_in_the_next_run(tmp_path, monkeypatch):
    path, x = tmp_path / "results.jsonl", inputs(4)

    def predict(_, part):
        if part[0, 0] == 2:
            raise MisuseError("it does not fit")
        return prediction(part)

    monkeypatch.setattr(Client, "predict", predict)
    mapped = job.map_private(CLIENT, x, results=path, inputs_per_session=1)
    assert mapped.failed == {"1": "it does not fit"}
    assert mapped.ids == ["0", "2", "3"]
    monkeypatch.setattr(Client, "predict", lambda _, part: prediction(part))
    assert job.map_private(CLIENT, x, results=path).report["sessions"] == 1


def test_data_sets_are_read_as_sessions_end(monkeypatch):
    monkeypatch.setattr(Client, "predict", lambda _, part: prediction(part))
    drawn = []
    source = (drawn.append(at) or CHUNK for at in range(100))
    sessions = pools.spread(source, copied(CLIENT), Sessions(workers=2))
    next(sessions)
    assert len(drawn) <= 4
    sessions.close()


def test_a_pool_that_is_none_is_refused():
    with pytest.raises(MisuseError, match="no pool: threads, processes"):
        next(pools.spread([CHUNK], copied(CLIENT), Sessions(pool="fibres")))
