"""What operators install: units, images, manifests and alerts agree with the program and with each other."""

import configparser
import json
import re
import shutil
import signal
import subprocess
import time
import tomllib

import pytest
import yaml
from conftest import ASSETS, ROOT
from faults.authorities import Authority
from faults.parties import COMMAND, ServerProcess, ask
from tacit.session.watch import get, look

PACKAGING = ROOT / "packaging"
GUIDE = ROOT / "docs/guides/operate.md"
UNIT = PACKAGING / "systemd/tacit.service"
PATIENT = {"timeout_seconds": 60, "connect_seconds": 60}
KINDS = ("_total", "_bucket", "_sum", "_count")


def unit() -> configparser.ConfigParser:
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str
    read.read(UNIT)
    return read


def manifest() -> dict[str, dict]:
    return {part["kind"]: part for part in yaml.safe_load_all((PACKAGING / "kubernetes/tacit.yaml").read_text())}


def service_files() -> dict[str, dict]:
    """Options and models of the service files that are shipped."""
    kubernetes = manifest()["ConfigMap"]["data"]["service.toml"]
    return {
        "systemd": tomllib.loads((PACKAGING / "systemd/service.toml").read_text()),
        "kubernetes": tomllib.loads(kubernetes),
    }


@pytest.fixture(scope="module")
def mnist(compiled):
    return compiled("exact")


@pytest.fixture(params=["systemd", "kubernetes"])
def running(request, mnist, tmp_path, tacit):
    """A server by one of the service files, with files and addresses of this machine, and a client's token."""
    content = service_files()[request.param]
    made = tacit("token", "ward-3", "--json").json
    (tmp_path / "tokens").write_text(f"{made['line']}\n")
    identity = Authority(tmp_path, "clinic").issue("server", "DNS:localhost")
    places = {
        "certificate": identity.certificate, "key": identity.key, "tokens": tmp_path / "tokens",
        "ledger": tmp_path / "ledger", "listen": "127.0.0.1:0", "metrics": "127.0.0.1:0",
    }  # fmt: skip
    assert set(places) <= set(content)
    options = {**content, **places}
    (model,) = options.pop("model")
    lines = [f"{name} = {json.dumps(value if isinstance(value, float | int) else str(value))}\n"
             for name, value in options.items()]  # fmt: skip
    own = {**model, "file": str(mnist)}
    lines += ["[[model]]\n", *(f"{name} = {json.dumps(value)}\n" for name, value in own.items())]
    file = tmp_path / "service.toml"
    file.write_text("".join(lines))
    server = ServerProcess(file)
    yield server, made["token"], model["name"]
    server.close()


def test_the_service_files_serve(running):
    import numpy as np

    server, token, name = running
    with np.load(ASSETS / "mnist_digits.npz") as archive:
        x, label = archive["x"][:1], archive["y"][0]
    how = {"plaintext": False, "pin": server.pin, "token": token, "model": name, **PATIENT}
    assert ask(server.address, x, **how)["outputs"] == label
    assert get(server.metrics, "/readyz", 5)[0] == 200
    server.signal(signal.SIGTERM)
    assert server.process.wait(20) == 0


def test_the_unit_runs_the_service_file_and_gives_it_time_to_drain():
    service = unit()["Service"]
    program, command, file, *options = service["ExecStart"].split()
    assert (program, command, options) == ("/opt/tacit/bin/tacit", "serve", ["--json"])
    content = service_files()["systemd"]
    assert file == "/etc/tacit/service.toml"
    assert float(service["TimeoutStopSec"]) > content["drain"]
    assert content["ledger"].startswith(f"/var/lib/{service['StateDirectory']}/")
    credentials = re.findall(r"^LoadCredential=(\S+?):", UNIT.read_text(), re.M)
    used = {content[name] for name in ("key", "tokens")}
    assert used == {f"/run/credentials/tacit.service/{name}" for name in credentials}


def test_systemd_reads_the_unit():
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    verified = subprocess.run([program, "verify", UNIT], capture_output=True, text=True, check=False)
    complaints = [line for line in verified.stderr.splitlines() if "/opt/tacit/bin/tacit is not executable" not in line]
    assert complaints == []


def test_the_image_serves_without_rights_and_ends_as_operators_expect():
    lines = (PACKAGING / "docker/Dockerfile").read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    found = dict(steps)
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", found["FROM"])
    assert int(found["USER"]) == manifest()["Deployment"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert f"--uid {found['USER']}" in found["RUN"]
    assert found["STOPSIGNAL"] == "SIGTERM"
    command = [*json.loads(found["ENTRYPOINT"]), *json.loads(found["CMD"])]
    assert command == unit()["Service"]["ExecStart"].replace("/opt/tacit/bin/", "").split()
    ports = {options[name].rpartition(":")[2] for options in service_files().values() for name in ("listen", "metrics")}
    assert set(found["EXPOSE"].split()) == ports


def test_the_health_check_of_the_image_tells_a_server_from_none(job):
    text = (PACKAGING / "docker/Dockerfile").read_text()
    (check,) = re.findall(r"HEALTHCHECK .*?CMD (\[.*?\])\n", text, re.S)
    _, option, program = json.loads(check)
    server = job.serve("--plaintext", "--metrics", "127.0.0.1:0")

    def healthy() -> int:
        here = program.replace("127.0.0.1:9100", str(server.metrics))
        return subprocess.run([COMMAND[0], option, here], capture_output=True, check=False).returncode

    assert healthy() == 0
    server.close()
    assert healthy() == 1


def test_the_manifest_drains_probes_and_never_has_two_servers_with_one_ledger():
    parts = manifest()
    spec = parts["Deployment"]["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    content = service_files()["kubernetes"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    before = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > before + content["drain"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert content["listen"].endswith(f":{ports['sessions']}")
    assert content["metrics"].endswith(f":{ports['metrics']}")
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("readiness", "liveness", "startup")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "readiness": "/readyz", "liveness": "/healthz", "startup": "/healthz",
    }  # fmt: skip
    assert container["resources"]["limits"]["memory"] == "4Gi"
    assert content["memory"] < 4 * 1024
    mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
    for name in ("certificate", "key", "tokens", "ledger"):
        assert any(content[name].startswith(place) for place in mounted), name
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    (port,) = parts["Service"]["spec"]["ports"]
    assert (port["targetPort"], port["protocol"]) == ("sessions", "TCP")
    assert "Ingress" not in parts


@pytest.fixture(scope="module")
def shown(job):
    """The names of all metrics of a server that has seen what there is."""
    server = job.serve("--metrics", "127.0.0.1:0", "--ledger", job.model.parent / "spent", "--budget", "total=1")
    try:
        how = {"plaintext": False, "pin": server.pin, **PATIENT}
        assert job.right(ask(server.address, job.x, **how))
        assert "error" in ask(server.address, job.x, **how)
        assert "error" in ask(server.address, job.x, plaintext=True, **PATIENT)
        end = time.monotonic() + 20
        last = {"tacit_handshakes_failed_total", "tacit_refusals_total"}
        while not last <= set(metrics := look(server.metrics).metrics):
            assert time.monotonic() < end, metrics
            time.sleep(0.05)
        return set(metrics) | {"tacit_certificate_expiry_seconds", "tacit_revocation_expiry_seconds"}
    finally:
        server.close()


def base(name: str) -> str:
    return name.removesuffix(next((kind for kind in KINDS if name.endswith(kind)), ""))


def test_alerts_are_about_metrics_that_there_are(shown):
    (group,) = yaml.safe_load((PACKAGING / "prometheus/alerts.yml").read_text())["groups"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])
    for rule in group["rules"]:
        names = set(re.findall(r"tacit_\w+", rule["expr"]))
        assert names <= shown, rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]


def test_the_guide_lists_every_metric_and_nothing_else(shown):
    rows = re.findall(r"^\| `(tacit_\w+)", GUIDE.read_text(), re.M)
    assert sorted({base(name) for name in rows}) == sorted({base(name) for name in shown})
    assert len(rows) == len(set(rows))
