"""Benches of single operations, and imitated links."""

import json

import pytest

OPERATIONS = [
    ("relu --count 500 --bits 8", 0),
    ("relu --count 500 --bits 12 --out-bits 20 --saturate", 0),
    ("maxpool --count 200 --bits 12 --window 9", 0),
    ("argmax --count 100 --bits 16", 0),
    ("truncate --count 500 --bits 32 --drop 12", 0),
    ("extend --count 500 --bits 8 --out-bits 16", 0),
    ("extend --count 500 --bits 8 --out-bits 16 --non-negative", 0),
    ("gelu --rows 8 --cols 50", 0),
    ("softmax --rows 8 --cols 50", 0),
    ("layernorm --rows 8 --cols 50", 0),
    ("gelu --rows 8 --cols 50 --suite comet --bits 10", 0),
    ("gelu --rows 8 --cols 50 --suite comet --bits 10 --start table", 0),
    ("gelu --rows 8 --cols 50 --suite comet --bits 10 --start flooding --accept-leakage", 0),
    ("softmax --rows 8 --cols 50 --suite comet --bits 10", 0),
    ("layernorm --rows 8 --cols 50 --suite comet", 0),
    ("conv --height 8 --width 8 --in 3 --out 4 --kernel 3 --stride 2 --padding 1 --rounding exact", 0),
    ("conv --height 8 --width 8 --in 3 --out 4", 2),
    ("conv --height 8 --width 7 --in 3 --out 4 --padding 1 --weight-bits 2 --activation-bits 4 --suite ufo", 0),
    ("conv --height 8 --width 8 --in 3 --out 4 --weight-bits 3 --suite ufo --tile 4", 0),
    ("conv --height 8 --width 8 --in 3 --out 4 --weight-bits 1 --suite ufo --baseline winograd", 0),
    ("conv --height 8 --width 8 --in 3 --out 4 --weight-bits 3 --suite ufo --baseline uniform", 0),
    ("matmul --rows 3 --inner 50 --cols 7 --weight-bits 4 --activation-bits 6 --suite ufo --ot ferret", 0),
    ("matmul --rows 3 --inner 50 --cols 7 --weight-bits 4 --activation-bits 6", 2),
    ("ot --kind softspoken4 --count 10000", 0),
    ("ot --kind ferret --count 200000", 0),
]


@pytest.mark.parametrize(("arguments", "tolerance"), OPERATIONS)
def test_operations_are_measured_and_checked(tacit, arguments, tolerance):
    done = tacit("bench", *arguments.split(), "--threads", "1", "--repeat", "1", "--json")
    assert done.code == 0, done.err
    report = done.json
    assert report["bench"] == arguments.split()[0]
    assert report["checked"] > 0
    assert report["max_error"] <= tolerance
    assert sum(report["bytes"].values()) == sum(
        sum(report["phases"][phase]["bytes"].values()) for phase in ("setup", "offline", "online")
    )
    assert sum(row["rounds"] for row in report["layers"]) == report["rounds"] > 0
    assert {"machine", "commit", "version", "protocol", "all_seconds", "suite", "network"} <= report.keys()
    assert all(
        report[field][party] > 0 for field in ("cpu_seconds", "peak_memory_bytes") for party in ("client", "server")
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("relu --count 10 --bits 8 --suite lola", "suite `lola` has no operations of its own"),
        ("truncate --count 10 --bits 8 --drop 9", "truncation"),
        ("gelu --rows 2 --cols 5 --suite comet --bits 10 --start flooding", "which leak"),
        ("gelu --rows 2 --cols 5 --start table", "only suite comet"),
        ("conv --height 8 --width 8 --in 3 --out 4 --tile 2", "only suite ufo"),
        ("conv --height 8 --width 8 --in 3 --out 4 --stride 2 --tile 2 --suite ufo", "dense 3x3 kernels"),
        ("relu --count 10 --bits 8 --network fast", "neither loopback, lan, wan nor RTTms,Mbps"),
    ],
)
def test_nonsense_is_refused_in_one_line(tacit, arguments, why):
    done = tacit("bench", *arguments.split())
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert why in done.err
    assert done.err.count("\n") == 1


def test_threads_change_nothing_but_time(tacit):
    arguments = "bench relu --count 60000 --bits 8 --repeat 1 --ot ferret --json"
    one, two = (tacit(*arguments.split(), "--threads", threads).json for threads in (1, 2))
    assert (one["threads"], two["threads"]) == (1, 2)
    assert (two["bytes"], two["rounds"], two["max_error"]) == (one["bytes"], one["rounds"], 0)
    assert tacit(*arguments.split(), "--threads", 65).code == 2


def test_source_and_link_are_planned_for(tacit):
    arguments = "bench relu --count 300000 --bits 8 --repeat 1 --json"
    chosen = ("--ot softspoken2", "--network 0ms,1000000", "--network 0ms,200")
    many, fast, slow = (tacit(*arguments.split(), *extra.split()).json for extra in chosen)
    assert (many["ot"], fast["ot"], slow["bandwidth"]) == ("softspoken2", "auto", 200_000_000)
    sent = [sum(done["phases"]["offline"]["bytes"].values()) for done in (many, fast, slow)]
    assert sent == sorted(sent, reverse=True)
    assert max(done["max_error"] for done in (many, fast, slow)) == 0


def test_throughput_counts_every_session_once(tacit, compiled):
    prices = "--core-hour 1 --egress-gb 0"
    done = tacit("bench", "throughput", compiled("exact"), *f"--clients 3 --seconds 2 {prices} --json".split())
    assert done.code == 0, done.err
    report = done.json
    assert (report["failed"], report["clients"], report["inputs"]) == (0, 3, 1)
    assert report["sessions"] >= 3
    assert report["predictions_per_hour"] == pytest.approx(report["sessions"] * 3600 / report["seconds"])
    each = report["per_1000"]
    one = tacit("bench", "model", compiled("exact"), "--repeat", 1, "--threads", 1, "--json").json
    for way in ("client_to_server", "server_to_client"):  # a first session, so keys are not kept
        assert each["bytes"][way] == pytest.approx(1000 * one["bytes"][way], rel=0.02)
    assert each["dollars"] == pytest.approx(each["cpu_seconds"]["server"] / 3600)
    assert report["predictions_per_core_hour"] == pytest.approx(1000 * 3600 / each["cpu_seconds"]["server"])


def test_nonsense_is_refused_in_json_too(tacit):
    done = tacit("bench", "truncate", "--count", 10, "--bits", 8, "--drop", 9, "--json")
    assert done.code == 1
    assert json.loads(done.out)["error"]["kind"] == "misuse"


def test_a_link_adds_its_closed_form(tacit):
    """Every round waits for half a round trip; what the machine adds is not the link's affair."""
    arguments = "bench argmax --count 100 --bits 16 --repeat 1 --json"
    bare, shaped = (tacit(*arguments.split(), *extra).json for extra in ([], ["--network", "30ms,100"]))
    assert shaped["network"] == "30ms,100"
    assert (shaped["bytes"], shaped["rounds"]) == (bare["bytes"], bare["rounds"])
    bits = 8 * min(shaped["bytes"].values())
    assert shaped["seconds"] > shaped["rounds"] * 0.015 + bits / 100e6


def test_a_run_over_a_link(tacit, compiled, one_digit):
    done = tacit("run", compiled("exact"), one_digit, "--network", "20ms,200", "--json")
    assert done.code == 0, done.err
    assert done.json["seconds"] > done.json["rounds"] * 0.01
    assert done.json["agreement"] == 1.0
