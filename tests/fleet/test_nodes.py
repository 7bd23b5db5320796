"""A fleet on an existing cluster of several nodes, which stays when the command returns."""

import numpy as np
import pytest
from tacit import Client, Model

from fleet.fleets import FleetProcess, command, fleet_file, ray, until


@pytest.fixture
def nodes():
    """A head without cores and two nodes with two each."""
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80 * 10**6, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    workers = [cluster.add_node(num_cpus=2, **small) for _ in range(2)]
    cluster.wait_for_nodes()
    yield cluster, workers
    if ray.is_initialized():
        ray.shutdown()
    cluster.shutdown()


def test_a_detached_fleet_spreads_loses_a_node_and_drains(nodes, mnist, digits, tmp_path):
    cluster, workers = nodes
    file = tmp_path / "fleet.toml"
    file.write_text(fleet_file(mnist, replicas=(2, 2)).replace("cpus = 8", f'address = "{cluster.address}"'))
    fleet = FleetProcess(file, "--detach")
    fleet.ready()
    assert fleet.process.wait(60) == 0
    before = fleet.servers()
    assert len({server["node"] for server in before}) == 2

    def answer():
        door = fleet.status()["door"]
        return Client(door["address"], pin=door["pin"], retry_for=30).predict(digits[:1]).outputs

    assert np.array_equal(answer(), Model(mnist).simulate(digits[:1]))
    cluster.remove_node(workers[0], allow_graceful=False)
    gone = {server["server"] for server in before if server["node"] == workers[0].node_id}
    assert len(gone) == 1
    until(lambda: len(fleet.servers()) == 2 and not gone & {one["server"] for one in fleet.servers()})
    assert np.array_equal(answer(), Model(mnist).simulate(digits[:1]))
    code, drained = command("fleet", "drain", file, "--all")
    assert code == 0
    assert len(drained["draining"]) == 2
    until(lambda: not [name for name in ray.util.list_named_actors(all_namespaces=True) if "tacit" in name["name"]])
    code, failed = command("fleet", "status", file)
    assert code == 1
    assert "does not run" in failed["error"]["message"]


def test_detaching_needs_a_cluster_that_stays(mnist, tmp_path):
    file = tmp_path / "fleet.toml"
    file.write_text(fleet_file(mnist))
    code, failed = command("fleet", "up", file, "--detach")
    assert code == 1
    assert "--detach needs a Ray cluster that stays" in failed["error"]["message"]
