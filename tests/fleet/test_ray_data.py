"""Data sets of Ray Data through private sessions."""

import numpy as np
import pytest
import tacit
from faults.parties import ServerProcess
from tacit import Client, Model


def test_a_data_set_goes_through_sessions_and_goes_on(mnist, digits, tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'tacit[ray]'")
    sets = pytest.importorskip("ray.data", reason="Ray Data is not installed: pip install 'tacit[ray]'")
    x, results = np.tile(digits, (4, 1, 1, 1)), tmp_path / "results.jsonl"
    server = ServerProcess(mnist)
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        rows = sets.from_items([{"id": str(at), "x": row} for at, row in enumerate(x)])
        client = Client(server.address, pin=server.pin)
        first = tacit.map_private(client, rows.limit(10), results=results, inputs_per_session=4)
        whole = tacit.map_private(client, rows, results=results, inputs_per_session=4)
    finally:
        ray.shutdown()
        server.close()
    assert (first.report["inputs"], whole.report["inputs"], whole.report["resumed"]) == (10, len(x), 10)
    order = np.argsort([int(name) for name in whole.ids])
    assert np.array_equal(whole.outputs[order], Model(mnist).simulate(x))
