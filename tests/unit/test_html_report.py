"""`tacit report`: the page says what the JSON says, is well formed, and asks the network for nothing."""

import json
from copy import deepcopy
from html.parser import HTMLParser
from math import log
from random import Random

import pytest
from conftest import ASSETS
from tacit.cli import main
from tacit.errors import MisuseError
from tacit.html_report import charts
from tacit.html_report.charts import Segment, Series
from tacit.html_report.content import Costs, Link, Run
from tacit.html_report.markup import VOID, Markup, element, text
from tacit.html_report.page import page, title_of
from tacit.html_report.prediction import compare
from tacit.html_report.reading import read
from tacit.html_report.timing import link_row

RESULTS = ASSETS.parents[2] / "bench" / "results"


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


@pytest.fixture
def made(tmp_path):
    """Make a report of contents by name; gives the page."""

    def make(contents, *options):
        paths = [write(tmp_path, name, content) for name, content in contents.items()]
        document = made_of(paths, tmp_path / "report.html", *options)
        return Page(document)

    return make


def made_of(paths, output, *options):
    """The document that the command writes."""
    with pytest.raises(SystemExit) as done:
        main(["report", *map(str, paths), "-o", str(output), *map(str, options)])
    assert done.value.code == 0
    return output.read_text(encoding="utf-8")


def refused(capsys, arguments):
    """The error in one line."""
    with pytest.raises(SystemExit) as done:
        main(["report", *map(str, arguments)])
    assert done.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_numbers_on_the_page(made, kind):
    content, wanted = KINDS[kind]
    page = made({kind: content})
    everything = page.said + " ".join(page.titles)
    for word in wanted:
        assert word in everything


def test_numbers_are_exact_where_they_are_pointed_at(made):
    page = made({"run": RUN})
    counts = [title for title in page.titles if title.endswith(" bytes")]
    for row in (RUN, *RUN["phases"].values(), *RUN["layers"]):
        for number in row["bytes"].values():
            assert f"{number:,} bytes" in counts
        assert f"{row['seconds']:.9g} s" in page.titles


def test_shares_add_up(made):
    page = made({"run": RUN})
    assert "32.9%" in page.said  # of bytes, online: 132,406 of 402,418
    assert "80.0%" in page.said  # of time


@pytest.mark.parametrize("names", [["run"], ["run", "bench", "plan", "paper", "counts"]])
def test_the_page_loads_nothing_and_runs_nothing(made, names):
    page = made({name: KINDS[name][0] for name in names})
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes)
        for name, value in attributes.items():
            assert "://" not in (value or ""), (tag, name)
            assert name not in {"src", "srcset", "style"}
        assert attributes.get("href", "#").startswith("#")
    style = " ".join(page.words)
    assert "url(" not in style
    assert "@import" not in style
    assert {
        "http-equiv": "Content-Security-Policy",
        "content": "default-src 'none'; style-src 'unsafe-inline'",
    } in page.rows("meta")


def test_links_lead_to_a_place_on_the_page(made):
    page = made({"a b": RUN, "a-b": BENCH})
    places = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(places) == len(set(places)) == 2
    assert {attributes["href"][1:] for attributes in page.rows("a")} == set(places)


HOSTILE = "<script>alert('&\"')</script>\x00\u202e\ud800</svg>"


def test_hostile_names_are_words(made):
    content = session(network=None, commit=HOSTILE, parameters=[HOSTILE], suite=HOSTILE)
    content["model"] = HOSTILE
    for row in content["layers"]:
        row |= {"name": HOSTILE, "operator": HOSTILE, "protocol": HOSTILE}
    page = made({"run": content, "again": content})
    assert "script" not in {tag for tag, _ in page.elements}
    assert "<script>alert('&\"')</script>" in page.said
    assert "\x00" not in page.said
    assert "\u202e" not in page.said


def test_markup_escapes_whatever_is_not_markup():
    assert element("td", "<b>", title='"&') == '<td title="&quot;&amp;">&lt;b&gt;</td>'
    assert element("td", element("b", "x"), class_=None) == "<td><b>x</b></td>"
    assert text(Markup("<b>")) == "<b>"
    assert isinstance(element("br") + "x", str)


def test_bars_stay_inside(made):
    page = made({"run": session(network="wan", **BOTH, **QUALITY), "other": session(3.0)})
    drawn = page.rows("rect")
    assert len(drawn) > 40
    for rectangle in drawn:
        assert 0 <= float(rectangle["x"]) <= float(rectangle["x"]) + float(rectangle["width"]) <= charts.WIDTH + 0.02
    for circle in page.rows("circle"):
        assert 0 <= float(circle["cx"]) <= charts.LINES[0]
        assert 0 <= float(circle["cy"]) <= charts.LINES[1]
    for picture in page.rows("svg"):
        assert picture["role"] == "img"
        assert "aria-label" in picture


def rectangles(drawn):
    return [(row["class"], float(row["x"]), float(row["width"])) for row in Page(drawn).rows("rect")]


def test_segments_follow_each_other_in_proportion():
    drawn = charts.bar([Segment("up", 1, "one"), Segment("none", 0, "nothing"), Segment("down", 3, "three")], 8)
    assert rectangles(drawn) == [("up", 0, 125), ("down", 125, 375)]
    assert rectangles(charts.bar([Segment("up", 9, "too much")], 4)) == [("up", 0, 1000)]
    assert rectangles(charts.bar([Segment("up", 0, "nothing")], 0)) == []


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5, 1.0, 1.2, 2.0, 99.0])
def test_ratios_go_left_and_right_of_the_middle(ratio):
    band, (style, x, width) = rectangles(charts.ratio_bar(ratio, 0.3, "ratio"))
    assert style == ("near" if abs(ratio - 1) <= 0.3 else "far")
    end = 500 * (1 + max(min(log(max(ratio, 0.01)) / log(4), 1), -1))
    assert (x, x + width) == pytest.approx((min(end, 500), max(end, 500)), abs=4.1)
    assert band[1] == pytest.approx(500 * (1 + log(0.7) / log(4)), abs=0.01)


@pytest.mark.parametrize("largest", [0, 1e-9, 0.3, 1, 4.0, 7.3, 99, 1e7])
def test_ticks_reach_the_largest_value(largest):
    marks = charts.ticks(largest)
    assert marks[0] == 0
    assert 2 <= len(marks) <= 5
    assert marks[-1] >= largest * 0.999
    assert largest == 0 or marks[-2] < largest


def test_lines_end_at_the_sum():
    sums = charts.running([1.0, 2.0, 5.0])
    assert sums == [1, 3, 8]
    page = Page(charts.lines([Series("up", "x", [(value, f"{value}") for value in sums])], "label", "layer"))
    last = page.rows("circle")[-1]
    assert (float(last["cx"]), float(last["cy"])) == (charts.LINES[0] - charts.MARGIN[1], charts.MARGIN[2])
    assert page.rows("polyline")[0]["points"].startswith("64,206 ")


def run_of(tmp_path, content, name="run"):
    (item,) = read([write(tmp_path, name, content)])
    assert isinstance(item, Run)
    return item


def test_time_on_a_link_is_divided(tmp_path):
    run = run_of(tmp_path, session(network="20ms,100"))
    assert run.link == Link("20ms,100", (0.02, 1e8))
    cells = " ".join(Page(Markup("").join(link_row("total", run.costs.total, 0.25, 1.5, 1e8))).words)
    assert cells.split()[:9] == ["total", "250.0", "ms", "1.50", "s", "2.00", "s", "3.75", "s"]
    assert "0.4%" in cells  # 8 * 180,295 bits of 1e8 * 3.75


def test_the_link_of_a_plan_follows_from_its_time_on_the_wire(tmp_path):
    planned = plan()
    wire = 8 * (180_295 + 222_123) / 4e8 + 17 * 0.04 / 2
    run = run_of(tmp_path, {**planned, "bandwidth": 400_000_000, "network_seconds": wire})
    assert run.planned
    assert run.link.network == pytest.approx((0.04, 4e8))


def test_a_link_may_be_named(made):
    page = made({"run": session()}, "--network", "wan")
    assert "40 ms round trip, 400 Mbit/s" in page.said
    assert "Link" in made({"run": session()}, "--network", "wan").words
    assert "Link" not in made({"run": session()}).words


def costs_of(tmp_path, content) -> Costs:
    return run_of(tmp_path, content).costs


def test_times_far_from_the_plan_are_marked(tmp_path, capsys):
    predicted = session()
    for row, factor in ((predicted["layers"][3], 0.5), (predicted["layers"][2], 1.2)):
        row["seconds"] *= factor
    embedded = write(tmp_path, "run", session(predicted=predicted))
    document = made_of([embedded], tmp_path / "report.html", "--json")
    content = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["ratio"]) for row in content["far_from_plan"]] == [("relu1", 2.0)]
    assert content["results"] == ["run"]
    assert content["bytes"] == len(document.encode())
    assert "Bytes and rounds equal the plan's in 8 of 8 rows. Times more than 30% off: 1." in Page(document).said


def test_a_plan_in_a_file_of_its_own_is_held_against_the_run(tmp_path):
    paths = [write(tmp_path, "run", RUN), write(tmp_path, "plan", plan())]
    said = Page(made_of(paths[:1], tmp_path / "report.html", "--plan", paths[1])).said
    assert "Bytes and rounds equal the plan's in 8 of 8 rows." in said
    assert "Times more than 30% off:" not in said


def test_a_plan_of_one_run_is_multiplied(tmp_path):
    several = session(inputs=3)
    for row in (several["phases"]["online"], *several["layers"][2:]):
        row["bytes"] = {way: 3 * count for way, count in row["bytes"].items()}
        row["rounds"] *= 3
    found = compare(costs_of(tmp_path, several), costs_of(tmp_path, plan()))
    assert found.factor == 3
    assert [row.name for row in found.phases] == ["setup", "online"]
    assert all(row.exact for row in (*found.phases, *found.layers))
    assert {row.name for row in found.layers} == {"session", "conv1", "relu1"}


def test_small_times_are_never_marked(tmp_path):
    run, predicted = session(), session()
    predicted["layers"][2]["seconds"], run["layers"][2]["seconds"] = 0.001, 0.01
    assert compare(costs_of(tmp_path, run), costs_of(tmp_path, predicted)).far == []


def test_several_files_stand_side_by_side(made):
    page = made({"first": RUN, "second": session(2.0, network="wan", top1=0.5), "third": plan()})
    assert "Side by side" in page.said
    assert "1.00\N{MULTIPLICATION SIGN} bytes, 2.00\N{MULTIPLICATION SIGN} time" in page.said
    assert page.said.count("first") > 5
    assert "second, relu1: 4 s" in page.titles
    assert "50.00%" in page.said


def test_layers_of_an_operator_are_added_up(made):
    content = session()
    for row, operator in zip(content["layers"], ("setup", "transfers", "relu", "relu"), strict=True):
        row["operator"] = operator
    page = made({"run": content})
    assert "Operators" in page.words
    assert f"{8_725 + 13_566:,} bytes" in page.titles
    assert "relu: 3 s" in page.titles
    assert "2 layers" in page.words


def test_layers_of_other_networks_are_not_compared(made):
    other = session()
    for row in other["layers"]:
        row["name"] += "x"
    assert "they have few layers in common" in made({"first": RUN, "second": other}).said


def test_settings_of_the_planner_are_ranked_and_held_against_the_best(tmp_path):
    summary, table, *_ = read([write(tmp_path, "planner", {"mnist": {"wan": MEASURED}})])
    assert summary.rows == (("mnist", "wan", 0.25, "ferret", 0.5, 0.5),)
    assert [row[:4] for row in table.rows] == [
        ("planned", 0.25, 0.3125, 1.25),
        ("ferret", 0.5, 0.5, 1.0),
        ("plain", 1.0, 0.75, 0.75),
    ]


def test_the_planners_row_is_marked_wherever_it_stands(made):
    slow = measured_with("planned", seconds=0.75)
    page = made({"planner": {"mnist": {"wan": slow}}})
    rows = [attributes.get("class") for attributes in page.rows("tr")]
    assert rows == [None, None, None, None, "marked", None]  # a head and a row; a head, ferret, planned, plain
    assert "predicted/measured: 0.417" in page.titles
    assert "planned/best other: 1.5" in page.titles


def test_a_setting_that_took_no_time_has_no_ratio(made):
    page = made({"planner": {"mnist": {"wan": measured_with("ferret", seconds=0)}}})
    assert "0.0 ms" in page.words
    assert "\N{EN DASH}" in page.words


def test_a_log_of_a_server(tmp_path):
    lines = [{"listening": "127.0.0.1:7000", "pin": "00"}, *(KINDS["server"][0],) * 2]
    items = read([write(tmp_path, "log", "\n".join(map(json.dumps, lines)))])
    assert [item.name for item in items] == ["log 1", "log 2"]
    assert items[0].memory == {"server": 1000}


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_results_of_the_repository_have_a_page(path, tmp_path):
    content = json.loads(path.read_text())
    page = Page(made_of([path], tmp_path / "report.html"))
    names = [row["name"] for row in content["layers"]] if isinstance(content.get("layers"), list) else []
    names += [entry["title"] for entry in content.values() if isinstance(entry, dict) and "title" in entry]
    assert all(name in page.said for name in names)
    assert "table" in {tag for tag, _ in page.elements}


def without(*path):
    """A run that lacks a value."""
    content = session()
    place = content
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return content


def with_value(value, *path):
    """A run with another value in it."""
    content = session()
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


def planner(entry):
    """Measurements of settings, of which those of one link may be wrong."""
    return {"mnist": {"wan": MEASURED}, "lenet": {"lan": entry}}


def measured_with(name, **values):
    """An entry with other values of a setting."""
    settings = MEASURED["settings"]
    return MEASURED | {"settings": settings | {name: settings[name] | values}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("{}\n{", "is no JSON: line 2"),
        ("[" * 100_000, "is no JSON"),
        ("[1]", "is no object"),
        ({}, "is not what `--json` prints"),
        ({"model": "m.tacit", "inputs": 1, "output": [1]}, "is not what `--json` prints"),
        ({"error": {"kind": "misuse", "message": "no such file"}}, "the report of an error: no such file"),
        ({"listening": "127.0.0.1:7000", "pin": None}, "has no session in it"),
        (without("rounds"), "has no field `rounds`"),
        (without("layers", 3, "bytes", "client_to_server"), "`layers[3].bytes` has no field `client_to_server`"),
        (without("phases", "online"), "`phases` has no field `online`"),
        (with_value("many", "rounds"), "`rounds` is no number"),
        (with_value(True, "rounds"), "`rounds` is no number"),
        (with_value(-1, "layers", 0, "rounds"), "`layers[0].rounds` is negative"),
        (with_value(float("nan"), "seconds"), "`seconds` is too large a number"),
        (with_value(10**400, "seconds"), "`seconds` is too large a number"),
        (with_value("later", "layers", 2, "phase"), "`layers[2].phase` is none of setup, offline, online"),
        (with_value({}, "layers"), "`layers` is no list"),
        (with_value([], "layers", 1, "name"), "`layers[1].name` is no text"),
        (with_value("fast", "network"), "fast"),
        (with_value("\ud800", "network"), "?"),
        (planner({}), "`lenet.lan` has no field `settings`"),
        (planner({"settings": []}), "`lenet.lan.settings` is no object"),
        (planner({"settings": {"plain": setting(1, 1, 1)}}), "`lenet.lan.settings` has no field `planned`"),
        (planner({"settings": {"planned": setting(1, 1, 1)}}), "has no setting but `planned`"),
        (planner(measured_with("plain", seconds="1")), "`lenet.lan.settings.plain.seconds` is no number"),
        (planner(measured_with("plain", predicted=None)), "`lenet.lan.settings.plain.predicted` is no number"),
        (planner(measured_with("planned", bytes=-1)), "`lenet.lan.settings.planned.bytes` is negative"),
        (planner(MEASURED | {"bytes_and_rounds_exact": 1}), "is neither true nor false"),
        ({"mnist": {"wan": MEASURED}, "lenet": []}, "`lenet` is no object"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, capsys, content, words):
    path = write(tmp_path, "run", content)
    error = refused(capsys, [path, "-o", tmp_path / "report.html"])
    assert words in error
    assert not (tmp_path / "report.html").exists()


def test_files_that_cannot_be_read_or_written(tmp_path, capsys):
    path = write(tmp_path, "run", RUN)
    assert "nowhere.json" in refused(capsys, [tmp_path / "nowhere.json", "-o", tmp_path / "report.html"])
    assert "there is no folder" in refused(capsys, [path, "-o", tmp_path / "nowhere" / "report.html"])
    assert "is a folder" in refused(capsys, [path, "-o", tmp_path])
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    assert "is no text in UTF-8" in refused(capsys, [tmp_path / "binary.json", "-o", tmp_path / "report.html"])
    paper = write(tmp_path, "paper", PAPER)
    assert "is no plan" in refused(capsys, [path, "--plan", paper, "-o", tmp_path / "report.html"])


def test_a_page_is_written_again_and_may_have_a_title(tmp_path, capsys):
    path, output = write(tmp_path, "run", RUN), tmp_path / "report.html"
    assert "<title>Report: small.tacit</title>" in made_of([path], output)
    assert "<title>Night &lt;run&gt;</title>" in made_of([path], output, "--title", "Night <run>")
    assert f"wrote {output}" in capsys.readouterr().out.replace("\n", "")


ODD = (None, 0, -1, 1e17, 1e-300, "", "x" * 300, [], {}, [{}], {"a": 1}, True, [1, [2]], "\ud800<")


def places(content, path=()):
    """The paths of all values."""
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_in_a_file_there_is_a_page_or_an_error(kind, tmp_path):
    random = Random(kind)
    made = 0
    for _ in range(60):
        content = deepcopy(KINDS[kind][0])
        *path, last = random.choice(list(places(content)))
        inner = content
        for key in path:
            inner = inner[key]
        inner[last] = deepcopy(random.choice(ODD))
        try:
            items = read([write(tmp_path, "odd", content)])
        except MisuseError:
            continue
        Page(page(items, None, title_of(items), "test"))
        made += 1
    assert made > 5
