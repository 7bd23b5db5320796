"""Fleet files: what they say, and the line of what cannot be."""

import pickle

import pytest
from tacit.errors import MisuseError
from tacit.fleet.config import read

FILE = """\
listen = "0.0.0.0:7000"
name = "clinic"
ledger = "state/ledger"
budget = "per-day=20"
tokens = "tokens"
relay = "never"

[ray]
address = "auto"

[scaling]
cool-down = 30

[[model]]
file = "mnist.tacit"
name = "digits"
min = 2
max = 8
threads = 2
memory = 700

[[model]]
file = "faces.tacit"
reveal = "label"
resources = { big = 1 }
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("mnist", "faces"):
        (tmp_path / f"{name}.tacit").write_bytes(name.encode())
    return tmp_path


def written(folder, text):
    path = folder / "fleet.toml"
    path.write_text(text)
    return path


def test_a_fleet_file_says_everything(folder):
    fleet = read(written(folder, FILE))
    digits, faces = fleet.pools
    assert (fleet.listen, fleet.name, fleet.relay, fleet.budgets) == (
        "0.0.0.0:7000",
        "clinic",
        "never",
        {"per_day": 20},
    )
    assert (fleet.ledger, fleet.tokens) == (str(folder / "state/ledger"), folder / "tokens")
    assert fleet.ledger.file == folder / "state/ledger"
    assert (fleet.key_path, fleet.secret_path) == (
        folder / "fleet-state/fleet.key",
        folder / "fleet-state/fleet.secret",
    )
    assert (fleet.ray.address, fleet.scaling.cool_down, fleet.health.every) == ("auto", 30.0, 1.0)
    assert (digits.name, digits.min, digits.max, digits.cores, digits.megabytes) == ("digits", 2, 8, 2.0, 700)
    assert (faces.name, faces.min, faces.max, faces.reveal, faces.resources) == ("faces", 1, 1, "label", {"big": 1.0})
    assert fleet.pool("faces") is faces
    assert pickle.loads(pickle.dumps(fleet)) == fleet


BROWSERS = """\
websocket = "0.0.0.0:7443"
websocket-name = "*.fleet.example.org"
origin = ["https://shop.example.org", "https://test.example.org:8443"]
"""


def test_browsers_reach_servers_by_names_that_a_certificate_holds(folder):
    fleet = read(written(folder, BROWSERS + FILE))
    pages = ("https://shop.example.org", "https://test.example.org:8443")
    at = {"10.0.0.5": "10-0-0-5", "[2001:db8::7]": "2001-db8-7", "node": "node"}
    for host, label in at.items():
        listening = fleet.pools[0].listening(fleet, host, {})
        assert (listening.websocket, listening.origins) == (f"{host}:0", pages)
        assert listening.advertise_websocket == f"{label}.fleet.example.org:0"
    bare = read(written(folder, 'websocket = "0.0.0.0:7443"\n' + FILE))
    listening = bare.pools[0].listening(bare, "10.0.0.5", {})
    assert (listening.websocket, listening.origins, listening.advertise_websocket) == ("10.0.0.5:0", (), None)
    none = read(written(folder, FILE)).pools[0].listening(read(written(folder, FILE)), "10.0.0.5", {})
    assert none.websocket is None
    assert none.origins == ()
    for text, words in {
        'origin = ["https://a.org"]\n': "say where they come, `websocket`",
        'websocket = "a:1"\norigin = "https://a.org"\n': "line 2: `origin` is a list of texts",
    }.items():
        with pytest.raises(MisuseError, match=words):
            read(written(folder, text + FILE))


def test_a_ledger_may_be_a_database(folder):
    url = "postgresql://tacit:secret@localhost:5433/budgets"
    fleet = read(written(folder, FILE.replace("state/ledger", url)))
    assert (fleet.ledger, fleet.ledger.file) == (url, None)
    assert "secret@" not in repr(fleet)
    assert pickle.loads(pickle.dumps(fleet)).ledger.name == "postgresql://tacit@localhost:5433/budgets"


def test_servers_share_the_door_s_identity_and_register_with_it(folder):
    fleet = read(written(folder, FILE))
    how = fleet.pools[0].listening(fleet, "10.0.0.3", {})
    assert (how.listen, how.key_file, how.name, how.memory) == ("10.0.0.3:0", fleet.key_path, "digits", 700)
    assert how.metrics == "127.0.0.1:0"
    assert how.ledger is None


def test_a_fleet_of_several_models_must_be_told_which(folder):
    fleet = read(written(folder, FILE))
    with pytest.raises(MisuseError, match="say --model with one of digits, faces"):
        fleet.pool(None)
    with pytest.raises(MisuseError, match="no model `letters`"):
        fleet.pool("letters")


def test_a_generation_is_the_file_and_the_options_but_not_the_number_of_servers(folder):
    first = read(written(folder, FILE)).pools[0].generation
    assert read(written(folder, FILE.replace("max = 8", "max = 9"))).pools[0].generation == first
    assert read(written(folder, FILE.replace("threads = 2", "threads = 1"))).pools[0].generation != first
    (folder / "mnist.tacit").write_bytes(b"another")
    assert read(written(folder, FILE)).pools[0].generation != first


def test_memory_is_planned(compiled, tmp_path):
    model = compiled("exact")
    text = f'listen = "127.0.0.1:0"\n[[model]]\nfile = "{model}"\nname = "digits"\n'
    one = read(written(tmp_path, text + "sessions = 1\n")).pools[0].megabytes
    many = read(written(tmp_path, text + "sessions = 1000\n")).pools[0].megabytes
    assert 320 < one < 400
    assert many > one + 1000


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (('listen = "0.0.0.0:7000"\n', ""), r"line 1: a fleet needs `listen`"),
        (('"never"', '"maybe"'), r"line 6: `relay` is one of never, old, always, not 'maybe'"),
        (('budget = "per-day=20"', 'budget = "day=20"'), r"--budget is total=N, per-day=N"),
        (('ledger = "state/ledger"\n', ""), r"`budget` needs `ledger`"),
        (('name = "clinic"', 'name = "My clinic"'), r"`name` is of lower case letters"),
        (("tokens =", "toknes ="), r"line 5: a fleet has no `toknes`; it has listen, name"),
        (('address = "auto"', 'adress = "auto"'), r"line 9: \[ray\] has no `adress`; it has address"),
        (('address = "auto"', 'address = "auto"\ncpus = 4'), r"line 8: `cpus` and `dashboard` are those of a local"),
        (("cool-down = 30", "cool-down = true"), r"line 12: `cool-down` is a number, not True"),
        (("min = 2", "min = 9"), r"line 14: `min` is at most `max`, not 9 of 8"),
        (("threads = 2", "threads = 65"), r"line 19: `threads` is 1 to 64, not 65"),
        (("mnist.tacit", "other.tacit"), r"line 15: .*other.tacit does not exist; `tacit compile` makes it"),
        (('reveal = "label"', 'reveal = "all"'), r"line 22: `reveal` cannot be 'all'"),
        (("big = 1", "big = -1"), r"line 25: `resources` is a table of amounts"),
        (('file = "faces.tacit"', 'file = "faces.tacit"\nname = "digits"'), r"two models are called `digits`"),
        (("[ray]", "[rya]"), r"a fleet has no `rya`"),
        (("relay =", "relay"), r"line 6"),
        ((FILE[FILE.index("[[") :], ""), r"has no \[\[model\]\]"),
    ],
)
def test_what_cannot_be_is_named_with_its_line(folder, change, why):
    assert change[0] in FILE
    with pytest.raises(MisuseError, match=why):
        read(written(folder, FILE.replace(*change)))


def test_a_file_that_is_not_there_is_named(folder):
    with pytest.raises(MisuseError, match=r"cannot read .*none\.toml"):
        read(folder / "none.toml")
