"""What clients pin of a model: the plan, its graph and the commitment to its file."""

import json

import pytest
from tacit import Model
from tacit.compiler import Options, compile_model

from faults.parties import IDLE, SLACK, ServerProcess, ask, named
from faults.relay import TO_SERVER, Relay

HELLO, REQUEST = 1, 6
PINS = {"plan_digest": "plan digest", "graph_digest": "graph digest", "model_commitment": "model commitment"}
NONE = "0" * 64


def pins(model: dict) -> dict[str, str]:
    """The pins of a model that `serve` prints, as a client takes them."""
    (plan,) = model["plan_digests"]
    return {"plan_digest": plan, "graph_digest": model["graph_digest"], "model_commitment": model["commitment"]}


@pytest.fixture(scope="module")
def offered(server) -> dict[str, str]:
    (model,) = server.models
    return pins(model)


def test_pins_that_hold(job, server, offered):
    outcome = ask(server.address, job.x, **offered)
    assert job.right(outcome)
    line = server.line(IDLE + SLACK)
    for report in (outcome["report"], line):
        assert report["digest"] == offered["plan_digest"]
        assert report["graph_digest"] == offered["graph_digest"]
        assert report["commitment"] == offered["model_commitment"]
    assert len(set(offered.values())) == 3


def test_the_file_tells_the_same(job, offered):
    found = Model(job.model).inspect()
    assert found["commitment"] == offered["model_commitment"] != found["digest"]
    assert found["public_digest"] == offered["graph_digest"]


@pytest.mark.parametrize("pin", PINS)
def test_other_offers_are_refused_before_the_client_goes_on(job, server, offered, pin):
    with Relay(server.address) as relay:
        outcome = ask(relay.address, job.x, **{**offered, pin: NONE})
    assert named(outcome["error"], {"transport"})
    message = outcome["error"]["message"]
    assert f"the {PINS[pin]} is {offered[pin]}, not {NONE} as pinned" in message
    assert "operator" in message
    assert [frame.tag for frame in relay.frames if frame.sender == TO_SERVER] == [HELLO, REQUEST]
    line = server.line(IDLE + SLACK)
    assert (line["reached"], line["end"], line["answered"]) == ("handshake", "failed", 0)
    assert job.served_by(server, **offered)


@pytest.mark.parametrize("pin", PINS)
@pytest.mark.parametrize("digits", ["", "abc", "g" * 64, "0" * 63])
def test_pins_that_are_none(job, server, pin, digits):
    outcome = ask(server.address, job.x, **{pin: digits})
    assert named(outcome["error"], {"misuse"})
    assert f"a {PINS[pin]} has 64 hexadecimal digits" in outcome["error"]["message"]


def test_pins_stay_for_the_same_file_and_settings(job, offered):
    same, other = (job.serve("--plaintext", *options) for options in ((), ("--reveal", "label")))
    assert pins(same.models[0]) == offered
    changed = pins(other.models[0])
    assert {name for name in offered if changed[name] != offered[name]} == {"plan_digest"}
    same.close()
    other.close()


def test_the_graph_is_the_same_on_every_link(job, offered):
    server = job.serve("--plaintext", "--protocols", "measured")
    (model,) = server.models
    assert len(set(model["plan_digests"])) == len(model["plan_digests"]) > 1
    assert (model["graph_digest"], model["commitment"]) == (offered["graph_digest"], offered["model_commitment"])
    for _ in range(2):  # measured, and known from the session before
        lasting = {name: offered[name] for name in ("graph_digest", "model_commitment")}
        outcome = ask(server.address, job.x, timeout_seconds=30, **lasting)
        assert job.right(outcome)
        assert outcome["report"]["digest"] in model["plan_digests"]
        assert server.line(30)["end"] == "finished"
    server.close()


def test_another_file_of_the_same_network_has_another_commitment(job, offered, tmp_path):
    source = job.model.with_name(Model(job.model).inspect()["source"])
    again, same = tmp_path / "again.tacit", tmp_path / "same.tacit"
    for path, salt_of in ((again, None), (same, again)):
        compile_model(source, path, None, (0, 1), Options(rounding="exact", salt_of=salt_of))
    assert same.read_bytes() == again.read_bytes()
    server = ServerProcess(again, "--plaintext")
    assert server.models[0]["commitment"] not in (None, offered["model_commitment"])
    outcome = ask(server.address, job.x, model_commitment=offered["model_commitment"])
    assert named(outcome["error"], {"transport"})
    server.close()


@pytest.fixture(scope="module")
def signed(tacit, job, tmp_path_factory):
    """A model card, and the public key of its signer."""
    folder = tmp_path_factory.mktemp("cards")
    key = tacit("card", "key", folder / "signer.pem", "--json").json["key"]
    assert (folder / "signer.pem").stat().st_mode & 0o777 == 0o600
    texts = ("--name", "small", "--version", "1.2", "--description", "For tests")
    made = tacit("card", "sign", job.model, "--key", folder / "signer.pem", *texts, "-o", folder / "a.card", "--json")
    assert made.json["card"]["commitment"] == Model(job.model).inspect()["commitment"]
    assert tacit("card", "show", folder / "a.card", "--json").json["card"] == made.json["card"]
    return folder / "a.card", key


def test_a_card_is_verified_and_shown(tacit, job, server, offered, signed):
    card, key = signed
    shows = job.serve("--plaintext", "--timeout", IDLE, "--card", card)
    assert shows.models[0]["card"]["key"] == key
    outcome = ask(shows.address, job.x, card_key=key, **offered)
    assert job.right(outcome)
    report = outcome["report"]
    assert report["card"] == shows.models[0]["card"]
    line = shows.line(IDLE + SLACK)
    # The offer is longer by the card and its name, and nothing else is.
    text = card.read_text().rstrip()
    more = len(json.dumps({"card": text}, separators=(",", ":"), ensure_ascii=False).encode()) - 1
    plain = ask(server.address, job.x)["report"]
    server.line(IDLE + SLACK)
    for got in (report, line):
        assert got["bytes"]["client_to_server"] == plain["bytes"]["client_to_server"]
        assert got["bytes"]["server_to_client"] == plain["bytes"]["server_to_client"] + more
        assert got["rounds"] == plain["rounds"]
    assert "card" not in ask(shows.address, job.x)["report"], "shown to who cannot verify it"
    shows.line(IDLE + SLACK)
    for wrong, words in (("0" * 64, f"{key} signed it"), ("0" * 63, "64 hexadecimal digits")):
        outcome = ask(shows.address, job.x, card_key=wrong)
        assert named(outcome["error"], {"transport", "misuse"})
        assert words in outcome["error"]["message"]
    reach = ("--server", shows.address, "--plaintext", job.file)
    shown = tacit("predict", *reach, "--card-key", key).out
    assert "model card: small 1.2" in shown
    assert f"signed by {key}" in shown
    shows.close()
    outcome = ask(server.address, job.x, card_key=key)
    assert "it shows none" in outcome["error"]["message"]
    assert "error" in server.line(IDLE + SLACK)


def test_cards_that_cannot_be_shown_are_named_at_once(tacit, job, signed, tmp_path):
    card, _ = signed
    content = card.read_text()
    other = tmp_path / "other.tacit"
    source = job.model.with_name(Model(job.model).inspect()["source"])
    compile_model(source, other, None, (0, 1), Options(rounding="exact"))
    cases = {
        "": "other fields",
        content.replace("1.2", "1.3"): "its signature does not hold",
        content.rstrip() + " " * 4096 + "x": "more than 4096 bytes",
        content: "about another model file",
    }
    for text, words in cases.items():
        (tmp_path / "x.card").write_text(text)
        model = other if text == content else job.model
        done = tacit("serve", model, "--listen", "127.0.0.1:0", "--plaintext", "--card", tmp_path / "x.card", "--json")
        assert named(done.json["error"], {"misuse"})
        assert words in done.json["error"]["message"]
    absent = tacit("serve", job.model, "--listen", "127.0.0.1:0", "--plaintext", "--card", tmp_path / "no", "--json")
    assert "cannot be shown" in absent.json["error"]["message"]


def test_cards_in_a_service_file(job, signed, tmp_path):
    card, key = signed
    (tmp_path / "s.card").write_text(card.read_text())
    service = tmp_path / "service.toml"
    service.write_text(f'[[model]]\nfile = "{job.model}"\ncard = "s.card"\n')
    server = ServerProcess(service, "--plaintext")
    assert server.models[0]["card"]["key"] == key
    assert job.served_by(server, card_key=key)
    server.close()
