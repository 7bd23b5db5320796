"""The door of a fleet and its ledger of budgets: one Ray actor, on the node where their files are.

The ledger is a SQLite file that only this process opens, or a PostgreSQL database; servers count through the door's
control channel, on whichever node they are. Ray starts the actor anew when its process ends, and servers register
again.
"""

import json
import os
import threading
from typing import Any

from tacit.errors import MisuseError
from tacit.fleet.config import Fleet
from tacit.session.door import Door, DoorOptions
from tacit.session.log import Log
from tacit.session.watch import fetched

SECONDS = 10.0
PLACES = "door.json"
"""The file in a fleet's folder with the ports that a door got where the fleet file leaves them open."""


class DoorHost:
    """The actor; its methods are called from the head."""

    def __init__(self, fleet: Fleet) -> None:
        """Open the door as the fleet file says, at the ports of last time. Raises `MisuseError` for what cannot be."""
        fleet.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        if fleet.ledger is not None and fleet.ledger.file is not None:
            fleet.ledger.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.fleet = fleet
        places = fleet.state / PLACES
        try:
            self.door = Door(options(fleet, **(json.loads(places.read_text()) if places.exists() else {})))
        except MisuseError:
            if not places.exists():
                raise
            places.unlink()  # another process has the ports of last time
            self.door = Door(options(fleet))
        places.write_text(json.dumps(found(fleet, self.door)), encoding="utf-8")
        threading.Thread(target=self.listen, name="tacit-fleet-events", daemon=True).start()

    def listen(self) -> None:
        """Write what happens to the door into its log, where the fleet has logs."""
        log = None
        if self.fleet.log is not None:
            self.fleet.log.mkdir(parents=True, exist_ok=True)
            log = Log(self.fleet.log / "door.jsonl", lambda line: print(line, flush=True))
        for event in self.door.events():
            if log is not None:
                log.event(**{name: value for name, value in event.items() if name != "time"})

    def info(self) -> dict[str, Any]:
        """Where clients and servers find it, its pin, and the number of its process."""
        door = self.door
        return {
            "address": door.address,
            "websocket": door.websocket,
            "control": door.control,
            "pin": door.pin,
            "pid": os.getpid(),
        }

    def metrics(self) -> str:
        """Its metrics as text in Prometheus's format."""
        return "" if self.door.metrics is None else fetched(self.door.metrics, "/metrics", SECONDS)

    def state(self) -> dict[str, Any]:
        """Its servers, the clients that wait, and its tickets."""
        return self.door.state()

    def reload(self) -> None:
        """Read certificates, revocation lists and tokens anew. Raises `MisuseError` for files that cannot be used."""
        self.door.reload()

    def stop(self, seconds: float) -> None:
        """Take no more clients, wait so many seconds for those that are passed on, and end."""
        self.door.stop(seconds)


def options(
    fleet: Fleet, listen: str | None = None, control: str | None = None, websocket: str | None = None
) -> DoorOptions:
    """How the door of a fleet is set up; the addresses are those of the file unless given."""
    return DoorOptions(
        listen=listen or fleet.listen,
        control=control or fleet.control,
        websocket=fleet.websocket and (websocket or fleet.websocket),
        origins=fleet.origin,
        secret=fleet.secret_path,
        tokens=fleet.tokens,
        ledger=fleet.ledger,
        budget=fleet.budgets,
        metrics="127.0.0.1:0",
        relay=fleet.relay,
        queue=fleet.queue,
        drain=fleet.drain,
        **fleet.identity(),
    )


def found(fleet: Fleet, door: Door) -> dict[str, str]:
    """The addresses whose ports the file leaves open, with the ports that the door got."""
    places = {"listen": (fleet.listen, door.address), "control": (fleet.control, door.control)}
    if fleet.websocket is not None and door.websocket is not None:
        places["websocket"] = (fleet.websocket, door.websocket)
    return {
        name: f"{asked.removesuffix(':0')}:{got.rpartition(':')[2]}"
        for name, (asked, got) in places.items()
        if asked.endswith(":0")
    }
