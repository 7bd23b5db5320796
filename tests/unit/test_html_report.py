"""`tacit report`: the page says what the JSON says, is well formed, and asks the network for nothing."""

import json
from math import log

import pytest
from report_files import BENCH, BOTH, KINDS, QUALITY, RUN, Page, made_of, measured_with, plan, session, write
from tacit.report.html import charts
from tacit.report.html.charts import Segment, Series
from tacit.report.html.content import Costs, Link, Run
from tacit.report.html.markup import Markup, element, text
from tacit.report.html.prediction import compare
from tacit.report.html.reading import read
from tacit.report.html.timing import link_row


@pytest.fixture
def made(tmp_path):
    """Make a report of contents by name; gives the page."""

    def make(contents, *options):
        paths = [write(tmp_path, name, content) for name, content in contents.items()]
        document = made_of(paths, tmp_path / "report.html", *options)
        return Page(document)

    return make


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
