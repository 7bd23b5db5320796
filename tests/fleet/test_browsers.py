"""Browsers at a fleet on Ray: its door names them the port for WebSockets of a server."""

import numpy as np
from service.at_door import Following, asked
from tacit import Client, Model

from fleet.fleets import fleet_file, until


def test_browsers_follow_the_door_of_a_fleet(fleets, mnist, digits):
    head = 'websocket = "127.0.0.1:0"\norigin = ["https://shop.example.org"]\nledger = "ledger"\nbudget = "total=3"'
    fleet = fleets(fleet_file(mnist, replicas=(2, 2), head=head))
    door, expected = fleet.status()["door"], Model(mnist).simulate(digits[:1])
    patient = {"plaintext": True, "follow": False, "keep_keys": False, "timeout_seconds": 60, "connect_seconds": 60}
    met = set()
    for _ in range(2):
        bridge = Following(door["websocket"], encrypted=True)
        bridge.values = digits[0].size
        assert np.array_equal(Client(bridge.address, **patient).predict(digits[:1]).outputs, expected)
        met.add(bridge.answer.ticket[0])
    assert met == {one["websocket"] for one in fleet.servers()}
    client = Client(door["address"], pin=door["pin"], retry_for=20)
    assert np.array_equal(client.predict(digits[:1]).outputs, expected)
    assert "budget" in asked(door["websocket"], True, Origin="https://shop.example.org").why
    tickets = until(lambda: (now := fleet.status()["door"]["tickets"]) and now["redeemed"] == 3 and now)
    assert (tickets["issued"], tickets["out"]) == (3, 0)
    assert fleet.stop() == 0
