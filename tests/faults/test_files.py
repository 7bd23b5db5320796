"""Damaged, foreign and hostile model files, inputs that must not pass, and outputs that cannot be written."""

import json
import os
import resource
import signal
import struct
import subprocess
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ASSETS
from sealed import header_of, sealed
from tacit import Client, Model, TacitError

from faults.parties import COMMAND, IDLE, ServerProcess, ask, named

Header = dict[str, Any]


def spoil(job, path: Path, change: Callable[[Header, Header], None]) -> Path:
    """A copy of the model whose header and graph went through `change`, with a digest that holds."""
    header, data = header_of(job.model.read_bytes())
    graph = json.loads(header["__metadata__"]["graph"])
    change(header, graph)
    if "graph" in header["__metadata__"]:
        header["__metadata__"]["graph"] = json.dumps(graph)
    path.write_bytes(sealed(header, data))
    return path


def linear(graph: Header) -> Header:
    found: Header = graph["nodes"][0]["op"]["linear"]
    return found


def tensor(header: Header) -> Header:
    found: Header = next(value for name, value in header.items() if name.endswith(".weight"))
    return found


GRAPHS: dict[str, Callable[[Header, Header], Any]] = {
    "huge shape": lambda _, g: g["tensors"][0].update(shape=[2**31, 2**31]),
    "large shape": lambda _, g: g["tensors"][0].update(shape=[2**28]),
    "negative shape": lambda _, g: g["tensors"][0].update(shape=[-2, 6, 6]),
    "fractional shape": lambda _, g: g["tensors"][0].update(shape=[2.5]),
    "cycle": lambda _, g: g["nodes"][0].update(inputs=[len(g["tensors"]) - 1]),
    "self loop": lambda _, g: g["nodes"][0].update(inputs=[g["nodes"][0]["output"]]),
    "dangling": lambda _, g: g["nodes"][0].update(inputs=[10**12]),
    "two writers": lambda _, g: g["nodes"][1].update(output=g["nodes"][0]["output"]),
    "no nodes": lambda _, g: g.update(nodes=[]),
    "unknown operator": lambda _, g: g["nodes"][0].update(op={"sigmoid": {}}),
    "unknown field": lambda _, g: g.update({"\x1b[2J": 1}),
    "terminal codes": lambda _, g: g.update(name="\x1b[2J\x1b[H"),
    "newer graph": lambda _, g: g.update(version=2),
    "unknown suite": lambda _, g: g.update(suite="weak"),
    "width 0": lambda _, g: g["tensors"][1]["format"].update(bits=0),
    "width 64": lambda _, g: g["tensors"][1]["format"].update(bits=64),
    "scale not positive": lambda _, g: g["tensors"][0]["format"].update(scale=-1.0),
    "accumulator too narrow": lambda _, g: linear(g).update(accumulator_bits=4),
    "accumulator too wide for secure parameters": lambda _, g: linear(g).update(accumulator_bits=60),
    "weights said to be narrower": lambda _, g: linear(g).update(weight_bits=1),
    "huge shift": lambda _, g: linear(g).update(shift=2**31),
    "huge channels": lambda _, g: linear(g)["conv"].update(out_channels=2**62),
    "huge kernel": lambda _, g: linear(g)["conv"].update(kernel=[2**40, 2**40]),
    "zero stride": lambda _, g: linear(g)["conv"].update(stride=[0, 0]),
    "weak parameters": lambda _, g: linear(g).update(degree=512, modulus_bits=64),
    "no format": lambda h, _: h["__metadata__"].pop("format"),
    "newer file": lambda h, _: h["__metadata__"].update(version="99"),
    "no graph": lambda h, _: h["__metadata__"].pop("graph"),
    "weights of another type": lambda h, _: tensor(h).update(dtype="F32"),
    "weights of another shape": lambda h, _: tensor(h)["shape"].reverse(),
    "weights beyond the file": lambda h, _: tensor(h).update(data_offsets=[0, 2**60]),
    "negative offsets": lambda h, _: tensor(h).update(data_offsets=[-8, 0]),
    "weights of no node": lambda h, _: h.update(other=dict(tensor(h))),
}
BYTES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "header only": lambda whole: whole[:8],
    "cut in the header": lambda whole: whole[:200],
    "cut in the weights": lambda whole: whole[:-1],
    "longer": lambda whole: whole + b"\0",
    "huge header": lambda whole: struct.pack("<Q", 2**63) + whole[8:],
    "foreign": lambda _: (ASSETS / "mnist.onnx").read_bytes(),
    "zeros": lambda whole: bytes(len(whole)),
    "one bit": lambda whole: whole[:-100] + bytes([whole[-100] ^ 4]) + whole[-99:],
    "weights replaced": lambda whole: whole[:-64] + b"\xff\xff\xff\x7f" * 16,
}


def limited() -> None:
    """What a hostile file may cost: four GiB of address space."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def refuses(*arguments: object, seconds: float = 30, **popen: Any) -> dict[str, Any]:
    """The error of a command under a memory limit: exit code 1, one line, one object."""
    command = [*COMMAND, *map(str, arguments), "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, preexec_fn=limited, **popen
    )
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr
    assert "panicked" not in done.stderr
    error: dict[str, Any] = json.loads(done.stdout)["error"]
    assert done.stderr == f"error: {error['message']}\n"
    return error


@pytest.mark.parametrize("case", GRAPHS)
def test_hostile_headers(job, tmp_path, case):
    path = spoil(job, tmp_path / "hostile.tacit", GRAPHS[case])
    error = refuses("serve", path, "--listen", "127.0.0.1:0")
    assert error["kind"] in {"misuse", "unsupported"}, error
    assert error["message"].isprintable()


@pytest.mark.parametrize("case", BYTES)
def test_damaged_files(job, tmp_path, case):
    path = tmp_path / "damaged.tacit"
    path.write_bytes(BYTES[case](job.model.read_bytes()))
    error = refuses("serve", path, "--listen", "127.0.0.1:0")
    assert named(error, {"misuse"})
    assert "damaged.tacit" in error["message"]
    if case in {"cut in the header", "cut in the weights", "longer", "huge header", "weights replaced", "one bit"}:
        assert "damaged: its digest should be" in error["message"]


@pytest.mark.parametrize("kind", ["absent", "folder", "pipe", "device"])
def test_models_that_are_no_files(tmp_path, kind):
    absent, pipe = tmp_path / "no.tacit", tmp_path / "pipe"
    os.mkfifo(pipe)
    path = {"absent": absent, "folder": tmp_path, "device": Path("/dev/zero"), "pipe": pipe}[kind]
    assert named(refuses("plan", path), {"misuse"})


# Inputs


def npy(header: object) -> bytes:
    """A .npy file with this header and no data."""
    text = str(header).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def bomb(path: Path, count: int) -> None:
    """A small archive that unpacks to 64 MiB and claims `count` numbers."""
    header = npy({"descr": "<f4", "fortran_order": False, "shape": (count,)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        member.write(header)
        for _ in range(64):
            member.write(bytes(1 << 20))


INPUTS: dict[str, Callable[[Path, np.ndarray], object]] = {
    "NaN": lambda path, x: np.save(path, np.where(x == x.max(), np.float32("nan"), x)),
    "infinity": lambda path, x: np.save(path, np.where(x == x.max(), np.float32("inf"), x)),
    "negative infinity": lambda path, x: np.save(path, np.where(x == x.max(), np.float32("-inf"), x)),
    "float64": lambda path, x: np.save(path, x.astype(np.float64)),
    "float16": lambda path, x: np.save(path, x.astype(np.float16)),
    "int32": lambda path, x: np.save(path, x.astype(np.int32)),
    "complex": lambda path, x: np.save(path, x.astype(np.complex64)),
    "big-endian": lambda path, x: np.save(path, x.astype(">f4")),
    "text": lambda path, x: np.save(path, x.astype(str)),
    "objects": lambda path, x: np.save(path, x.astype(object), allow_pickle=True),
    "another shape": lambda path, x: np.save(path, x[..., :5]),
    "too many axes": lambda path, x: np.save(path, x[None]),
    "no inputs": lambda path, x: np.save(path, x[:0]),
    "no numbers": lambda path, _: np.save(path, np.float32(1)),
    "empty file": lambda path, _: path.write_bytes(b""),
    "cut": lambda path, x: (np.save(path, x), path.write_bytes(path.read_bytes()[:-1])),
    "huge": lambda path, _: path.write_bytes(npy({"descr": "<f4", "fortran_order": False, "shape": (2**40,)})),
    "negative": lambda path, _: path.write_bytes(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 72)}")),
    "code": lambda path, _: path.write_bytes(npy("__import__('os').abort()")),
    "huge header": lambda path, _: path.write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1)),
    "bomb": lambda path, _: bomb(path, 2**38),
    "bad zip": lambda path, _: path.write_bytes(b"PK\x03\x04" + bytes(100)),
    "pipe": lambda path, _: os.mkfifo(path),
}


@pytest.mark.parametrize("case", INPUTS)
def test_inputs_that_must_not_pass(job, server, tmp_path, case):
    path = tmp_path / "x.npy"
    INPUTS[case](path, job.x)
    error = refuses("predict", "--server", server.address, "--plaintext", path)
    assert named(error, {"misuse"})
    if case in {"huge", "bomb"}:
        assert "GiB of numbers" in error["message"]
    # A shape can only be judged against the plan; everything else never connects.
    if case in {"another shape", "too many axes"}:
        assert named(server.line(30)["error"], {"transport"})
    assert server.lines.empty()
    assert job.served_by(server)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_library_refuses_what_is_not_finite(job, server, value):
    x = job.x.copy()
    x.flat[7] = value
    assert ask(server.address, x)["error"]["kind"] == "misuse"
    with pytest.raises(TacitError, match="finite"):
        Model(job.model).simulate(x)
    assert job.served_by(server)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.uint8, bool])
def test_the_library_refuses_other_types(job, server, dtype):
    with pytest.raises(TacitError, match="float32"):
        Client(server.address, plaintext=True).predict(job.x.astype(dtype))
    assert server.lines.empty()


@pytest.mark.parametrize("value", [1e30, -1e30, 3.4e38, 1.5, -0.25, 1e-45])
def test_values_out_of_range_saturate(job, server, value):
    x = job.x.copy()
    x.flat[::3] = value
    outcome = ask(server.address, x, timeout_seconds=30)
    assert np.array_equal(outcome["outputs"], Model(job.model).simulate(x))
    low, high = float(job.x.min()), 1.0
    assert np.array_equal(Model(job.model).simulate(x), Model(job.model).simulate(np.clip(x, min(low, 0), high)))
    assert "error" not in server.line(30)


# Outputs


def test_results_that_cannot_be_written(job, server):
    command = [*COMMAND, "predict", "--server", server.address, "--plaintext", str(job.file)]
    for extra in ([], ["--json"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*command, *extra], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False
            )
        assert (done.returncode, done.stderr) == (1, "error: [Errno 28] No space left on device\n")
        assert "error" not in server.line(30)
    assert job.served_by(server)


def test_a_server_that_cannot_say_where_it_listens(job):
    with Path("/dev/full").open("w") as full:
        command = [*COMMAND, "serve", str(job.model), "--listen", "127.0.0.1:0", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    errors = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert (done.returncode, errors) == (1, ["error: [Errno 28] No space left on device"])


def test_a_full_disk_under_the_log_does_not_stop_the_server(job, tmp_path):
    """The log may grow to 400 bytes: enough to say where the server listens, and what."""
    log = tmp_path / "log"
    limit = (400, 400)
    command = [*COMMAND, "serve", str(job.model), "--listen", "127.0.0.1:0", "--json", "--plaintext"]
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, "--timeout", str(IDLE)],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),  # noqa: PLW1509
        )
    try:
        until = time.monotonic() + 30
        while not log.read_text().endswith("\n"):
            assert process.poll() is None
            assert time.monotonic() < until, log.read_text()
        address = json.loads(log.read_text())["listening"]
        for _ in range(3):
            assert job.right(ask(address, job.x, timeout_seconds=30, connect_seconds=30))
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        errors = process.communicate()[1]
    assert "warning: a session's report was not written" in errors
    assert log.stat().st_size <= 400


@pytest.mark.parametrize("place", ["pipe", "/proc/tacit", "absent/x.tacit", "folder", "small"])
def test_models_that_cannot_be_written(tmp_path, place):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    output = tmp_path / place
    command = ["compile", ASSETS / "mnist.onnx", "-o", output, "--calibrate", ASSETS / "mnist_calibration.npz"]
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))}
    done = subprocess.run(
        [*COMMAND, *map(str, command), "--json"],
        **(full if place == "small" else {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert named(json.loads(done.stdout)["error"], {"misuse"})
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "pipe"}
    assert (tmp_path / "pipe").is_fifo()


def test_the_same_error_with_and_without_json(tacit, job):
    server = ServerProcess(job.model, "--plaintext")
    server.close()
    arguments = ("predict", "--server", server.address, "--plaintext", job.file)
    plain, json_ = tacit(*arguments), tacit(*arguments, "--json")
    assert (plain.code, plain.out) == (1, "")
    assert json_.code == 1
    assert plain.err == json_.err == f"error: {json_.json['error']['message']}\n"
    assert json_.json["error"]["kind"] == "transport"


def test_json_names_the_node(tacit, tmp_path):
    from networks import Network

    model = Network().add("Atan", name="squash").save(tmp_path)
    done = tacit("compile", model, "-o", tmp_path / "x.tacit", "--json")
    assert (done.code, done.json["error"]["kind"], done.json["error"]["node"]) == (1, "unsupported", "squash")


def test_json_on_wrong_usage(tacit):
    done = tacit("plan", "--frobnicate", "--json")
    assert (done.code, done.json["error"]["kind"]) == (2, "usage")


@pytest.mark.parametrize("limit", ["--timeout", "--connect-timeout", "--session-timeout"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e300"])
def test_timeouts_that_are_none(tacit, job, limit, value):
    arguments = ("predict", "--server", "127.0.0.1:1", "--plaintext", job.file, limit, value, "--json")
    done = tacit(*arguments)
    assert (done.code, done.json["error"]["kind"]) == (2, "usage")
    assert f"'{limit}'" in done.json["error"]["message"]
