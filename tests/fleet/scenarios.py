"""What a fleet must stand: kills, replacement and scaling under load. Each gives the numbers that say whether it did.

`python tests/fleet/scenarios.py MODEL.tacit FOLDER [kills|rolling|scaling|doors|...]` prints them at full size. Answers
are compared with the interpreter's bit for bit, so the model is one of `tacit compile --rounding exact`.
"""

import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
from tacit import Client, Model, RefusedError, _core

from fleet.crowd import Crowd, audited, reaper, redeemed, used
from fleet.fleets import FleetProcess, fleet_file, until

DIGITS = Path(__file__).parents[2] / "python/tacit/assets/mnist_digits.npz"
CAPPED = 10


class Stage:
    """A fleet with tokens, a ledger and an audit, and inputs with the interpreter's answers."""

    def __init__(self, folder: Path, model: Path, replicas: tuple[int, int], tokens: int, scaling: str = "") -> None:
        self.folder, self.model = folder, folder / "served.tacit"
        shutil.copy(model, self.model)
        made = [_core.generate_token(f"ward-{number}", None) for number in range(tokens)]
        self.secrets, self.lines = folder / "secrets", folder / "tokens"
        self.secrets.write_text("".join(f"{secret}\n" for secret, _ in made))
        self.lines.write_text("".join(f"{line}\n" for _, line in made))
        with np.load(DIGITS) as archive:
            x = archive["x"]
        chance = np.random.default_rng(1)
        x = np.concatenate([x, np.clip(x + chance.normal(0, 0.2, x.shape), 0, 1).astype(np.float32)])
        self.x, self.inputs = x, folder / "inputs.npz"
        np.savez(self.inputs, x=x, expected=Model(model).simulate(x))
        self.ledger, self.audits = folder / "ledger", (folder / "audit-servers", folder / "audit-clients")
        for audit in self.audits:
            audit.mkdir()
        head = f'tokens = "{self.lines}"\nledger = "{self.ledger}"\nbudget = "total=100000"\nlog = "logs"\nqueue = 1000'
        text = fleet_file(self.model, replicas=replicas, head=head, scaling=scaling, own="cpus = 0.25")
        (folder / "fleet.toml").write_text(text)
        os.environ["TACIT_AUDIT"] = str(self.audits[0])
        try:
            self.fleet = FleetProcess(folder / "fleet.toml")
        finally:
            del os.environ["TACIT_AUDIT"]
        self.fleet.ready()

    def crowd(self, clients: int) -> Crowd:
        """Clients of the fleet, each with a token of its own."""
        return Crowd(self.fleet, self.secrets, self.inputs, clients, self.audits[1])

    def spent(self) -> dict:
        """What the ledger charged, and what the audits of servers and clients say was consumed."""
        servers, clients = (audited(audit) for audit in self.audits)
        tickets = [line for line in servers if line.startswith("ticket")]
        common = {line for line in servers if not line.startswith("ticket")}
        alone = set(clients) - common
        return {
            "charged": sum(used(self.ledger).values()),
            "tickets_redeemed": redeemed(self.ledger),
            "tickets_told": self.fleet.status()["door"]["tickets"]["redeemed"],
            "tickets_audited": len(tickets),
            "correlations": len(common),
            "twice_at_servers": sum(count > 1 for count in servers.values()),
            "twice_at_clients": sum(count > 1 for count in clients.values()),
            "at_servers_only": len(common - set(clients)),
            "at_clients_only": sum(not line.startswith("kept") for line in alone),
            "kept_in_vain": sum(line.startswith("kept") for line in alone),
        }

    def capped(self, tries: int) -> dict:
        """A client with a budget of a few inputs, which asks from many threads at once."""
        _core.set_budget(str(self.ledger), "token:ward-0", "digits", json.dumps(
            {"total": used(self.ledger).get("token:ward-0", 0) + CAPPED, "per_day": None, "per_minute": None}
        ))  # fmt: skip
        door = self.fleet.status()["door"]
        token, found, lock = (
            self.secrets.read_text().split()[0],
            {"answered": 0, "refused": 0, "other": []},
            threading.Lock(),
        )

        def one() -> None:
            client = Client(door["address"], pin=door["pin"], token=token, retry_for=60, keep_keys=False)
            try:
                client.predict(self.x[:1])
                end = "answered"
            except RefusedError:
                end = "refused"
            except Exception as error:  # noqa: BLE001 (it is shown)
                end = repr(error)
            with lock:
                if end in found:
                    found[end] += 1
                else:
                    found["other"].append(end)

        threads = [threading.Thread(target=one) for _ in range(tries)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {**found, "budget": CAPPED}

    def close(self) -> int:
        """Drain the fleet; the exit code."""
        code = self.fleet.stop(120)
        self.fleet.close()
        return code


def kills(stage: Stage, sessions: int, clients: int, every: tuple[float, float] = (4.0, 1.5), seed: int = 1) -> dict:
    """Sessions of many clients while servers and clients are killed at random; then a client with a small budget."""
    outcome = stage.crowd(clients).run(sessions, reaper(*every, seed))
    # What was set aside for sessions that died is free again when their tickets are over.
    until(lambda: not stage.fleet.status()["door"]["tickets"].get("out"), 90, "the end of all tickets")
    return {"scenario": "kills", "sessions": sessions, "clients": clients, **outcome.numbers(), **stage.spent(),
            "capped": stage.capped(2 * CAPPED), "restarts": stage.fleet.status()["models"][0]["restarts"]}  # fmt: skip


def rolling(stage: Stage, sessions: int, clients: int) -> dict:
    """The model is replaced by another compilation of itself under load, by SIGHUP's way: the file is applied again."""
    seen: dict = {"lowest_ready": 1000}

    def replace(crowd: Crowd) -> None:
        time.sleep(2)
        text = stage.fleet.file.read_text()
        stage.fleet.file.write_text(text.replace("sessions = 4", "sessions = 5"))
        before = {one["server"] for one in stage.fleet.servers()}
        began = time.monotonic()
        stage.fleet.reload()
        while True:
            state = stage.fleet.status()
            ready = {one["server"] for one in state["servers"] if one["state"] == "ready" and one["warm"]}
            seen["lowest_ready"] = min(seen["lowest_ready"], len(ready))
            if len(ready) == len(before) and not ready & before and len(state["servers"]) == len(ready):
                break
            assert time.monotonic() - began < 120, state
            time.sleep(0.1)
        seen["seconds_to_replace"] = round(time.monotonic() - began, 1)
        seen["under_load"] = not crowd.done.is_set()

    outcome = stage.crowd(clients).run(sessions, replace)
    return {
        "scenario": "rolling",
        "sessions": sessions,
        "clients": clients,
        **outcome.numbers(),
        **stage.spent(),
        **seen,
    }


def doors(stage: Stage, sessions: int, clients: int, times: int = 2) -> dict:
    """The door is killed under load; it comes back at its ports, where clients and servers find it again."""
    before = stage.fleet.status()["door"]
    seen: dict = {"killed_doors": 0, "same_place": True, "seconds_to_come_back": []}

    def kill(crowd: Crowd) -> None:
        for _ in range(times):
            time.sleep(2)
            pid = stage.fleet.status()["door"]["pid"]
            os.kill(pid, signal.SIGKILL)
            seen["killed_doors"] += 1
            began = time.monotonic()
            now = until(lambda pid=pid: back(pid), what="the door")
            seen["seconds_to_come_back"].append(round(time.monotonic() - began, 1))
            seen["same_place"] &= all(now[name] == before[name] for name in ("address", "control", "pin"))
        seen["under_load"] = not crowd.done.is_set()

    def back(pid: int) -> dict | None:
        door = stage.fleet.status()["door"]
        return door if door.get("pid") not in (None, pid) and len(stage.fleet.servers()) == len(servers) else None

    servers = {one["server"] for one in stage.fleet.servers()}
    outcome = stage.crowd(clients).run(sessions, kill)
    seen["same_servers"] = {one["server"] for one in stage.fleet.servers()} == servers
    return {
        "scenario": "doors",
        "sessions": sessions,
        "clients": clients,
        **outcome.numbers(),
        **stage.spent(),
        **seen,
    }


def scaling(stage: Stage, sessions: int, clients: int) -> dict:
    """1 to 4 to 1 servers under load, as an operator asks."""
    seen: dict = {}

    def scale(crowd: Crowd) -> None:
        for count, name in ((4, "seconds_to_4"), (1, "seconds_to_1")):
            time.sleep(2)
            began = time.monotonic()
            stage.fleet.scale(count)
            until(lambda count=count: len(stage.fleet.servers()) == count == len(stage.fleet.status()["servers"]))
            seen[name] = round(time.monotonic() - began, 1)
        seen["under_load"] = not crowd.done.is_set()

    outcome = stage.crowd(clients).run(sessions, scale)
    return {
        "scenario": "scaling",
        "sessions": sessions,
        "clients": clients,
        **outcome.numbers(),
        **stage.spent(),
        **seen,
    }


def nothing_twice_and_budgets_exact(found):
    """What holds whatever was killed: of the numbers of `kills`, `rolling` or `scaling`."""
    assert (found["wrong"], found["unlike"], found["given_up"]) == (0, 0, 0)
    assert (found["twice_at_servers"], found["twice_at_clients"]) == (0, 0)
    # A server that was killed may not have told the door of the last tickets. The ledger has them.
    assert found["charged"] == found["tickets_redeemed"] >= found["tickets_told"]
    # A server may be killed after the ledger has counted and before the audit has its line.
    assert 0 <= found["charged"] - found["tickets_audited"] <= found["killed_servers"]
    assert found["correlations"] > found["answered"] == found["sessions"]


FULL = {
    "small": (kills, (4, 4), 60, 6),
    "kills": (kills, (4, 4), 1000, 50),
    "rolling": (rolling, (4, 4), 400, 16),
    "scaling": (scaling, (1, 4), 400, 16),
    "doors": (doors, (4, 4), 400, 16),
}


def main() -> None:
    """Print the numbers of each scenario at full size."""
    model, folder, wanted = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or list(FULL)
    if Model(model).inspect()["options"]["rounding"] != "exact":
        sys.exit(f"{model} rounds at random, so answers differ from the interpreter's: compile with --rounding exact")
    for name in wanted:
        scenario, replicas, sessions, clients = FULL[name]
        place = folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        stage = Stage(place, model, replicas, clients)
        try:
            found = scenario(stage, sessions, clients)
            print(json.dumps(found), flush=True)
            if scenario is not doors:  # a door that was killed does not know what it counted
                nothing_twice_and_budgets_exact(found)
        finally:
            print(json.dumps({"exit_code": stage.close()}), flush=True)


if __name__ == "__main__":
    main()
