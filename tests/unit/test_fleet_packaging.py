"""The manifest for KubeRay: its parts fit together, and the program reads its fleet file."""

import re
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from tacit._core import __version__
from tacit.fleet.config import read

PARTS = {
    part["kind"]: part
    for part in yaml.safe_load_all((ROOT / "packaging/kubernetes/fleet.yaml").read_text(encoding="utf-8"))
}
CLUSTER = PARTS["RayJob"]["spec"]["rayClusterSpec"]
HEAD = CLUSTER["headGroupSpec"]["template"]
(WORKERS,) = CLUSTER["workerGroupSpecs"]
PODS = {"head": HEAD["spec"], "worker": WORKERS["template"]["spec"]}


@pytest.fixture
def fleet(tmp_path):
    """The fleet of the manifest, with a model that there is here."""
    text = PARTS["ConfigMap"]["data"]["fleet.toml"]
    (tmp_path / "mnist.tacit").write_bytes(b"model")
    (tmp_path / "fleet.toml").write_text(text.replace("/etc/tacit/models/mnist.tacit", "mnist.tacit"))
    return read(tmp_path / "fleet.toml")


def mounts(pod):
    (container,) = pod["containers"]
    return [mount["mountPath"] for mount in container["volumeMounts"]]


def test_the_program_reads_the_fleet_file_and_finds_its_files_in_the_pods(fleet):
    everywhere = (fleet.secret, fleet.certificate, fleet.key, fleet.tokens, Path("/etc/tacit/models/mnist.tacit"))
    for pod in PODS.values():
        assert all(any(str(file).startswith(place) for place in mounts(pod)) for file in everywhere)
    for file in (fleet.ledger, fleet.state):
        assert any(str(file).startswith(place) for place in mounts(PODS["head"]))
    assert PARTS["RayJob"]["spec"]["entrypoint"].split() == ["tacit", "fleet", "up", "/etc/tacit/fleet.toml"]
    assert "/etc/tacit/fleet.toml" in mounts(PODS["head"])
    assert (fleet.ray.address, fleet.relay) == ("auto", "always")


def test_ports_are_those_of_the_fleet_file(fleet):
    (container,) = PODS["head"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for name, address in (("sessions", fleet.listen), ("control", fleet.control), ("metrics", fleet.metrics)):
        assert address.endswith(f":{ports[name]}")
    assert HEAD["metadata"]["annotations"]["prometheus.io/port"] == str(ports["metrics"])
    service = PARTS["Service"]["spec"]
    assert service["ports"][0]["targetPort"] == "sessions"
    assert service["selector"].items() <= HEAD["metadata"]["labels"].items()
    assert not service["selector"].items() <= WORKERS["template"]["metadata"]["labels"].items()


def test_pods_have_time_to_drain_and_no_rights(fleet):
    (head,) = PODS["head"]["containers"]
    wait = next(int(one["value"]) for one in head["env"] if one["name"] == "RAY_JOB_STOP_WAIT_TIME_S")
    for pod in PODS.values():
        assert pod["terminationGracePeriodSeconds"] >= wait > fleet.drain
        assert pod["securityContext"]["runAsNonRoot"]
        for container in (*pod["containers"], *pod["initContainers"]):
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["image"] == f"tacit-ray:{__version__}"
        used = {mount["name"] for one in (*pod["containers"], *pod["initContainers"]) for mount in one["volumeMounts"]}
        assert used == {volume["name"] for volume in pod["volumes"]}


def test_servers_fit_the_workers_and_ray_is_the_one_that_is_locked(fleet):
    (container,) = PODS["worker"]["containers"]
    requests = container["resources"]["requests"]
    (pool,) = fleet.pools
    each = min(float(requests["cpu"]) / pool.cores, int(requests["memory"].removesuffix("Gi")) * 1074 / pool.megabytes)
    assert int(each) * WORKERS["maxReplicas"] >= pool.max
    assert CLUSTER["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    locked = re.search(r"^ray\[[\w,]+\]==(.+)$", (ROOT / "requirements/ray.in").read_text(), re.M)[1]
    assert CLUSTER["rayVersion"] == locked
    assert CLUSTER["authOptions"] == {"mode": "token"}
