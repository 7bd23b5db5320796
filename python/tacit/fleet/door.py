"""The door of a fleet and its ledger of budgets: one Ray actor, on the node where their files are.

The ledger is a SQLite file that only this process opens; servers count through the door's control channel, on whichever
node they are. Ray starts the actor anew when its process ends, and servers register again.
"""

import threading
from collections import deque
from importlib import import_module
from typing import Any

from tacit.fleet.config import Fleet

MODULE = "tacit.session.door"
EVENTS = 1000
"""The last events that are kept."""


class DoorHost:
    """The actor; its methods are called from the head."""

    def __init__(self, fleet: Fleet) -> None:
        """Open the door as the fleet file says. Raises `MisuseError` for what cannot be."""
        module = import_module(MODULE)
        fleet.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.door = module.Door(
            module.DoorOptions(
                listen=fleet.listen,
                control=fleet.control,
                secret=fleet.secret_path,
                tokens=fleet.tokens,
                ledger=fleet.ledger,
                budget=fleet.budgets,
                metrics="127.0.0.1:0",
                relay=fleet.relay,
                queue=fleet.queue,
                **fleet.identity(),
            )
        )
        self.events: deque[dict[str, Any]] = deque(maxlen=EVENTS)
        threading.Thread(target=self.listen, name="tacit-fleet-events", daemon=True).start()

    def listen(self) -> None:
        """Keep the last events."""
        for event in self.door.events():
            self.events.append(event)

    def info(self) -> dict[str, Any]:
        """Where clients and servers find it, and its pin."""
        return {"address": self.door.address, "control": self.door.control, "pin": self.door.pin}

    def state(self) -> dict[str, Any]:
        """Its servers, the clients that wait, and its tickets."""
        return dict(self.door.state())

    def drain(self, server: str) -> None:
        """Give no more tickets to a server; it leaves when those that are out and its sessions have ended."""
        self.door.drain(server)

    def stop(self, seconds: float) -> None:
        """Turn new clients away, give those that wait so many seconds, and end."""
        self.door.stop(seconds)
