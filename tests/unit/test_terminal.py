"""Tables of reports on a terminal of 80 columns."""

from io import StringIO

from rich.console import Console
from tacit.report.terminal import layer_table

LAYER = {
    "name": "correlations",
    "protocol": "selection by RLWE, progression-free, 6912 comparisons",
    "phase": "online",
    "bytes": {"client_to_server": 191_240_000, "server_to_client": 646_870_000},
    "rounds": 1000,
    "seconds": 30.1,
}


def test_words_of_protocols_are_not_broken():
    out = StringIO()
    Console(file=out, width=80).print(layer_table({"layers": [LAYER]}))
    shown = out.getvalue().split()
    assert {"correlations", *LAYER["protocol"].split(), "online"} <= set(shown)
