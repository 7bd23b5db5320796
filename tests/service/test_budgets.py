"""Who a client is, what it may ask, and that no crash gives an answer away."""

import random
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pytest
from faults.authorities import Authority
from faults.parties import COMMAND, ServerProcess, ask

KILLS = 100
BUDGET = 120
PATIENT = {"timeout_seconds": 30, "connect_seconds": 30}


def token(tacit, name: str, *options: object) -> tuple[str, str]:
    """A token, and its line for the server's file."""
    made = tacit("token", name, *options, "--json").json
    return made["token"], made["line"]


def used(tacit, ledger: Path) -> dict[str, int]:
    rows = tacit("budget", "show", "--ledger", ledger, "--json").json["rows"]
    return {row["client"]: row["used"] for row in rows}


def test_tokens_say_who_a_client_is_and_what_it_learns(job, tacit, tmp_path):
    (ward, ward_line), (trial, trial_line) = token(tacit, "ward-3"), token(tacit, "trial", "--reveal", "label")
    stranger, _ = token(tacit, "stranger")
    tokens = tmp_path / "tokens"
    tokens.write_text(f"# who may ask\n{ward_line}\n{trial_line}\n")
    tokens.chmod(0o600)
    ledger = tmp_path / "ledger.sqlite"
    server = job.serve("--plaintext", "--tokens", tokens, "--ledger", ledger, "--budget", "total=2,per-day=5")
    try:
        for _ in range(2):
            assert job.right(ask(server.address, job.x, token=ward, **PATIENT))
            assert server.line(10)["identity"] == "token:ward-3"
        spent = ask(server.address, job.x, token=ward, **PATIENT)["error"]
        assert spent["kind"] == "refused"
        assert "the budget of client `ward-3` for model `small` is used up: 2 of 2 inputs in all" in spent["message"]
        assert server.line(10)["end"] == "refused"
        assert job.right(ask(server.address, job.x, token=trial, **PATIENT), reveal="label")
        assert server.line(10)["reveal"] == "label"
        unknown = {"token": stranger, "model": "nothing"}
        for how, why in (({}, "show a token"), (unknown, "the token is not one of this server's")):
            error = ask(server.address, job.x, **how, **PATIENT)["error"]
            assert error["kind"] == "refused"
            assert why in error["message"]
            assert server.line(10)["end"] == "refused"
        assert used(tacit, ledger) == {"token:trial": 1, "token:ward-3": 2}
        given = tacit("budget", "set", "--ledger", ledger, "--client", "token:ward-3", "--model", "small", "--total", 3)
        assert given.code == 0
        assert job.right(ask(server.address, job.x, token=ward, **PATIENT)), "a running server keeps to new limits"
    finally:
        server.close()


def test_a_service_file_has_several_models(job, tmp_path):
    file = tmp_path / "service.toml"
    file.write_text(
        f'plaintext = true\nledger = "ledger"\n[[model]]\nfile = "{job.model}"\nname = "scores"\n'
        f'[[model]]\nfile = "{job.model}"\nname = "labels"\nreveal = "label"\nbudget = {{ total = 1 }}\n'
    )
    server = ServerProcess(file)
    assert job.right(ask(server.address, job.x, model="scores", **PATIENT))
    assert job.right(ask(server.address, job.x, model="labels", **PATIENT), reveal="label")
    assert "used up" in ask(server.address, job.x, model="labels", **PATIENT)["error"]["message"]
    error = ask(server.address, job.x, **PATIENT)["error"]
    assert "name a model; this server has scores, labels" in error["message"]
    server.close()


def test_a_certificate_says_who_a_client_is(job, tacit, tmp_path):
    authority = Authority(tmp_path, "ours")
    own, ours = authority.issue("server", "IP:127.0.0.1"), authority.issue("clinic", "DNS:client")
    ledger = tmp_path / "ledger.sqlite"
    server = ServerProcess(job.model, *own.served(), "--client-ca", authority.ca, "--ledger", ledger)
    how = {"plaintext": False, "ca": authority.ca, "certificate": ours.certificate, "key": ours.key, **PATIENT}
    assert job.right(ask(server.address, job.x, **how))
    assert server.line(10)["identity"] == "cert:CN=clinic"
    server.close()
    assert used(tacit, ledger) == {"cert:CN=clinic": 1}


def test_a_rate_limit_says_when_to_come_back(job, tmp_path):
    server = job.serve("--plaintext", "--ledger", tmp_path / "ledger", "--budget", "per-minute=1")
    assert job.right(ask(server.address, job.x, **PATIENT))
    error = ask(server.address, job.x, **PATIENT)["error"]
    if error["kind"] == "busy":
        assert "try again in" in error["message"]
    server.close()
    assert error["kind"] == "busy"


def test_a_ledger_that_cannot_be_written_answers_nothing(job, tmp_path):
    """Another process holds the ledger: whether an input was counted is not known."""
    ledger = tmp_path / "ledger"
    server = job.serve("--plaintext", "--ledger", ledger, "--budget", "total=9", "--timeout", 30)
    assert job.right(ask(server.address, job.x, **PATIENT))
    server.line(10)
    holder = sqlite3.connect(ledger)
    holder.execute("begin exclusive")
    error = ask(server.address, job.x, **PATIENT)["error"]
    line = server.line(20)
    holder.rollback()
    holder.close()
    assert error["kind"] == "busy"
    assert "the server cannot count inputs now" in error["message"]
    assert "cannot use the ledger" in line["error"]["message"]
    assert job.right(ask(server.address, job.x, **PATIENT))
    server.close()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--budget", "total=1"), "a budget needs a ledger"),
        (("--ledger", "no/such/folder/ledger"), "cannot use the ledger"),
        (("--tokens", "no-such-file"), "cannot read the tokens"),
        (("--ledger", "l", "--budget", "weekly=1"), "--budget is total=N"),
    ],
)
def test_options_that_cannot_be_right(job, tacit, options, why):
    done = tacit("serve", job.model, "--listen", "127.0.0.1:0", "--plaintext", *options)
    assert done.code == 1
    assert why in done.err


def test_no_crash_gives_an_answer_away(job, tacit, tmp_path):
    """Killed at random moments and started anew: never more answers than the budget, and the ledger opens."""
    ledger, rng = tmp_path / "ledger", random.Random(7)
    with subprocess.Popen([*COMMAND, "--version"], stdout=subprocess.DEVNULL) as warm:
        warm.wait()
    lock, answers, refused = threading.Lock(), [], []
    for _ in range(KILLS):
        server = job.serve("--plaintext", "--ledger", ledger, "--budget", f"total={BUDGET}", "--timeout", 30)
        stop = threading.Event()

        def load(address: str = server.address, stop: threading.Event = stop) -> None:
            while not stop.is_set():
                outcome = ask(address, job.x, timeout_seconds=5, connect_seconds=5)
                with lock:
                    if job.right(outcome):
                        answers.append(1)
                    elif outcome["error"]["kind"] == "refused":
                        refused.append(1)

        clients = [threading.Thread(target=load) for _ in range(2)]
        for client in clients:
            client.start()
        time.sleep(rng.uniform(0, 0.15))
        server.process.kill()
        stop.set()
        for client in clients:
            client.join()
        server.close()
    counted = sum(used(tacit, ledger).values())
    print(f"{KILLS} kills: {len(answers)} answers, {counted} inputs counted, {len(refused)} refusals")
    assert 0 < len(answers) <= counted <= BUDGET
    with sqlite3.connect(ledger) as opened:
        assert opened.execute("pragma integrity_check").fetchone() == ("ok",)
    opened.close()
