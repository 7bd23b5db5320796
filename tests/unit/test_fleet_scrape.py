"""The metrics of several servers under one scrape."""

from tacit.fleet.scrape import Scrape, merged
from tacit.session.watch import get, samples

ONE = """\
# HELP tacit_inputs Inputs answered.
# TYPE tacit_inputs counter
tacit_inputs_total{model="digits"} 5
# TYPE tacit_ready gauge
tacit_ready 1
# EOF
"""


def test_each_family_stands_once_with_a_sample_of_each_server():
    text = merged([("a", ONE), ("b", ONE.replace(" 5", " 7"))])
    lines = text.splitlines()
    assert lines.count("# TYPE tacit_inputs counter") == 1
    assert lines[-1] == "# EOF"
    assert lines.count("# EOF") == 1
    found = {(name, labels): value for name, labels, value in samples(text)}
    assert found == {
        ("tacit_inputs_total", (("server", "a"), ("model", "digits"))): 5,
        ("tacit_inputs_total", (("server", "b"), ("model", "digits"))): 7,
        ("tacit_ready", (("server", "a"),)): 1,
        ("tacit_ready", (("server", "b"),)): 1,
    }
    families = [line.split("{")[0] for line in lines if not line.startswith("#")]
    assert families == ["tacit_inputs_total"] * 2 + ["tacit_ready"] * 2


def test_a_scrape_answers_over_http():
    scrape = Scrape("127.0.0.1:0", lambda: [("a", ONE)])
    try:
        assert get(scrape.address, "/healthz", 5) == (200, "ok\n")
        assert get(scrape.address, "/metrics", 5) == (200, merged([("a", ONE)]))
        assert get(scrape.address, "/sessions", 5)[0] == 404
    finally:
        scrape.server.shutdown()
        scrape.server.server_close()
