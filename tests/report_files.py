"""Files that commands print with `--json`, small ones of every kind, and pages read again."""

import json
from html.parser import HTMLParser

import pytest
from tacit.cli import main
from tacit.report.html.markup import VOID


class Page(HTMLParser):
    """What stands on a page; fails where elements are not nested."""

    def __init__(self, document):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.titles, self.words = [], [], [], []
        self.feed(document)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self.titles += [attributes["title"]] if "title" in attributes else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.titles if self.open[-1:] == ["title"] else self.words).append(data)

    def rows(self, tag):
        """Attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def said(self):
        """All words on the page."""
        return " ".join(self.words)


def cost(up, down, rounds, seconds=None):
    timed = {} if seconds is None else {"seconds": seconds}
    return {"bytes": {"client_to_server": up, "server_to_client": down}, "rounds": rounds, **timed}


def layer(name, phase, *of):
    return {"name": name, "operator": name, "protocol": "comparison by OT", "phase": phase, **cost(*of)}


def session(factor=1.0, **others):
    """A small run, its times multiplied by a factor."""
    times = [seconds * factor for seconds in (0.25, 0.5, 1.0, 2.0)]
    layers = [
        layer("session", "setup", 20_001, 11_001, 6, times[0]),
        layer("correlations", "offline", 138_003, 101_007, 2, times[1]),
        layer("conv1", "online", 8_725, 64_005, 2, times[2]),
        layer("relu1", "online", 13_566, 46_110, 7, times[3]),
    ]
    phases = {
        "setup": cost(20_001, 11_001, 6, times[0]),
        "offline": cost(138_003, 101_007, 2, times[1]),
        "online": cost(22_291, 110_115, 9, times[2] + times[3]),
    }
    whole = cost(180_295, 222_123, 17, sum(times))
    known = {"model": "build/small.tacit", "suite": "auto", "reveal": "output", "ot": "auto", "inputs": 1}
    return {**known, **whole, "phases": phases, "layers": layers, "digest": "ab" * 32, **others}


def plan():
    """The plan of that run, without times."""
    content = session()
    del content["digest"], content["seconds"]
    for row in (*content["phases"].values(), *content["layers"]):
        del row["seconds"]
    return content


def setting(seconds, predicted, traffic):
    """A setting that was measured."""
    return {"seconds": seconds, "predicted": predicted, "bytes": traffic, "rounds": 12, "ot": "auto"}


MACHINE = {"processor": "AMD EPYC", "cores": 2, "system": "Linux", "python": "3.11", "flags": ["aes", "avx2"]}
BOTH = {
    "cpu_seconds": {"client": 1.5, "server": 2.5},
    "peak_memory_bytes": {"client": 64_000_000, "server": 72_500_000},
}
QUALITY = {"max_error": 23, "equal_outputs": 0, "agreement": 0.875, "top1": 0.9375, "output": [7]}
RUN = session(network=None, **BOTH, **QUALITY)
BENCH = session(
    bench="relu", threads=1, machine=MACHINE, version="0.1.0", commit="c0ffee", repeat=3, all_seconds=[3, 4], **BOTH
)
PAPER = {
    "table": "gala-operations",
    "full": False,
    "rows": [{"name": "MLP", "paper": 70, "ours": 35, "unit": "rotations"}],
    "measured": [{"name": "AlexNet", "gazelle": 7486, "unit": "rotations"}],
}
UNKNOWN = {**PAPER, "rows": [{"name": "x", "paper": None, "ours": 3.5, "unit": "s"}], "measured": {"a": {"b": 1.5}}}
PEER = {"title": "ReLU", "spu": {}, "tacit": {}}
for mode in ("cold", "warm"):
    PEER["spu"][mode], PEER["tacit"][mode] = {"bytes": 9e6, "seconds": 8.0}, {"bytes": 1.5e6, "seconds": 0.5}
OPERATIONS = {
    name: 10 + index
    for index, name in enumerate(("rotations", "multiplications", "additions", "ciphertexts", "responses"))
}
MEASURED = {
    "settings": {
        "plain": setting(1.0, 0.75, 20_000_000),
        "planned": setting(0.25, 0.3125, 10_000_000),
        "ferret": setting(0.5, 0.5, 5_000_000),
    },
    "bytes_and_rounds_exact": True,
    "machine": MACHINE,
    "version": "0.1.0",
    "commit": "c0ffee",
    "repeat": 3,
    "date": "2026-01-02",
}
KINDS = {
    "run": (RUN, ["180,295 bytes", "20,001 bytes", "93.75%", "87.50%", "72.50 MB", "comparison by OT"]),
    "predict": (
        session(logits=[[1, 2]], output=[1]),
        ["conv1: 8,725 bytes to server", "relu1: 46,110 bytes to client"],
    ),
    "evaluate": ({"mode": "private", **RUN}, ["private", "93.75%"]),
    "bench": (BENCH, ["c0ffee", "AMD EPYC", "aes avx2", "relu"]),
    "plan": (plan(), ["planned, nothing ran", "402.42 kB"]),
    "link": (session(network="20ms,100"), ["20ms,100", "20 ms round trip, 100 Mbit/s"]),
    "paper": (PAPER, ["MLP, paper: 70 rotations", "0.50", "7,486"]),
    "no paper": (UNKNOWN, ["3.5", "a, b"]),
    "all tables": (
        {"date": "2026-01-02", "tables": [PAPER, {"table": "x", "status": "failed"}]},
        ["MLP, ours: 35 rotations"],
    ),
    "peers": ({"relu": PEER}, ["ReLU, cold", "ReLU, warm, SPU: 9.0 MB", "0.17", "0.06", "ours/SPU"]),
    "failed peer": (
        {"relu": PEER, "gelu": {**PEER, "title": "GELU", "spu": {"error": "it ended"}}},
        ["ReLU, warm, SPU: 9.0 MB", "GELU, cold, SPU failed", "GELU, warm, SPU failed"],
    ),
    "counts": (
        {"model": "mlp", "suite": "gala", "layers": [{"name": "fc1", **OPERATIONS}], "operations": OPERATIONS},
        ["Operations of mlp", "fc1", "14"],
    ),
    "simulate": (
        {
            "mode": "simulate",
            "model": "m.tacit",
            "inputs": 8,
            "seconds": 1.5,
            "top1": 0.625,
            "output": [1],
            "source": "m.onnx",
        },
        ["62.50%", "m.onnx"],
    ),
    "planner": (
        {"mnist": {"wan": MEASURED}, "lenet": {"wan": MEASURED, "lan": MEASURED}},
        ["mnist on wan", "lenet on lan", "ferret", "0.50", "1.25", "equal the plan's", "10,000,000 bytes"],
    ),
    "server": (
        session(client="127.0.0.1:9", end="client gone", cpu_seconds=1.25, peak_memory_bytes=1000),
        ["client gone"],
    ),
}


def write(folder, name, content):
    path = folder / f"{name}.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def made_of(paths, output, *options):
    """The document that the command writes."""
    with pytest.raises(SystemExit) as done:
        main(["report", *map(str, paths), "-o", str(output), *map(str, options)])
    assert done.value.code == 0
    return output.read_text(encoding="utf-8")


def planner(entry):
    """Measurements of settings, of which those of one link may be wrong."""
    return {"mnist": {"wan": MEASURED}, "lenet": {"lan": entry}}


def measured_with(name, **values):
    """An entry with other values of a setting."""
    settings = MEASURED["settings"]
    return MEASURED | {"settings": settings | {name: settings[name] | values}}
