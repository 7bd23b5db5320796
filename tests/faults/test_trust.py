"""TLS: who is admitted, who is refused and in which words, and a connection that is tampered with."""

import datetime
import itertools
import signal
import socket
import time

import pytest

from faults.authorities import Authority, self_signed
from faults.parties import IDLE, SLACK, ServerProcess, ask, named
from faults.relay import TO_CLIENT, TO_SERVER, Cut, Relay, Stall

PAST = ("20200101000000Z", "20210101000000Z")
FUTURE = ("20990101000000Z", "21000101000000Z")
LOCAL = "IP:127.0.0.1,DNS:localhost"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("theirs"), "theirs")


@pytest.fixture(scope="module")
def certified(job, authority):
    """A server with a certificate of our authority."""
    server = job.serve(*authority.issue("server", LOCAL).served(), "--timeout", IDLE)
    yield server
    server.close()


@pytest.fixture(scope="module")
def pinned(job):
    """A server with a fresh key."""
    server = job.serve("--timeout", IDLE)
    yield server
    server.close()


def refused(server: ServerProcess, job, kinds=("transport",), **how) -> str:
    """Both sides end with an error; returns the client's words."""
    outcome = ask(server.address, job.x, **{"plaintext": False, **how})
    assert outcome["seconds"] < IDLE + SLACK
    assert named(outcome["error"], set(kinds))
    assert named(server.line(IDLE + SLACK)["error"], {"transport", "peer"})
    return outcome["error"]["message"]


def test_an_authority_vouches(job, certified, authority):
    assert job.served_by(certified, plaintext=False, ca=authority.ca)
    _, _, port = certified.address.rpartition(":")
    outcome = ask(f"localhost:{port}", job.x, plaintext=False, ca=authority.ca)
    assert job.right(outcome)
    certified.line(30)


def test_pins_work_with_certificates_too(job, certified):
    assert job.served_by(certified, plaintext=False, pin=certified.pin)


def test_another_authority(job, certified, authority, stranger):
    assert "UnknownIssuer" in refused(certified, job, ca=stranger.ca)
    assert job.served_by(certified, plaintext=False, ca=authority.ca)


@pytest.mark.parametrize(
    ("name", "subject", "days", "word"),
    [
        ("expired", LOCAL, PAST, "expired"),
        ("early", LOCAL, FUTURE, "not valid yet"),
        ("elsewhere", "DNS:example.org", ("", ""), "not valid for name"),
    ],
)
def test_certificates_that_do_not_hold(job, authority, name, subject, days, word):
    server = job.serve(*authority.issue(name, subject, days).served(), "--timeout", IDLE)
    assert word in refused(server, job, ca=authority.ca)
    assert job.served_by(server, plaintext=False, pin=server.pin)
    server.close()


def test_self_signed_keys_need_their_pin(job, pinned, authority):
    assert "UnknownIssuer" in refused(pinned, job, ca=authority.ca)
    assert job.served_by(pinned, plaintext=False, pin=pinned.pin)


@pytest.mark.parametrize("authority", ["TRUE", "FALSE"])
def test_a_self_signed_certificate_is_to_be_pinned(job, tmp_path, authority):
    """The certificate of `openssl req -x509` given as --ca; with CA:TRUE it is no server's, whatever its names."""
    alone = self_signed(tmp_path, f"CA:{authority}", LOCAL if authority == "TRUE" else "DNS:example.org")
    server = job.serve(*alone.served(), "--timeout", IDLE)
    words = refused(server, job, ca=alone.certificate)
    assert f"`{alone.certificate}` holds the server's own certificate" in words
    assert words.endswith(f"--pin {server.pin}")
    assert job.served_by(server, plaintext=False, pin=server.pin)
    server.close()


def test_a_self_signed_certificate_of_a_server_may_vouch_for_itself(job, tmp_path):
    alone = self_signed(tmp_path, "CA:FALSE", LOCAL)
    server = job.serve(*alone.served(), "--timeout", IDLE)
    assert job.served_by(server, plaintext=False, ca=alone.certificate)
    server.close()


def test_wrong_pins(job, pinned):
    wrong = ("0" if pinned.pin[0] != "0" else "1") + pinned.pin[1:]
    assert "not the pinned one" in refused(pinned, job, pin=wrong)
    assert job.served_by(pinned, plaintext=False, pin=pinned.pin)


@pytest.mark.parametrize("pin", ["", "abc", "g" * 64, "é" * 32, "0" * 63])
def test_pins_that_are_none(job, pinned, pin):
    outcome = ask(pinned.address, job.x, plaintext=False, pin=pin)
    assert named(outcome["error"], {"misuse"})
    assert "64 hexadecimal digits" in outcome["error"]["message"]


def test_plaintext_to_a_tls_port(job, pinned):
    words = refused(pinned, job, ("peer", "transport"), plaintext=True)
    assert "tag 0x15" in words or "closed" in words
    assert job.served_by(pinned, plaintext=False, pin=pinned.pin)


def test_tls_to_a_plaintext_port(job, server):
    refused(server, job, pin="0" * 64)
    assert job.served_by(server)


@pytest.fixture(scope="module")
def members_only(job, authority):
    """A server that admits clients of our authority."""
    server = job.serve(*authority.issue("club", LOCAL).served(), "--client-ca", authority.ca, "--timeout", IDLE)
    yield server
    server.close()


def test_members_are_admitted(job, members_only, authority):
    member = authority.issue("member", "DNS:member")
    how = {"ca": authority.ca, "certificate": member.certificate, "key": member.key}
    assert job.served_by(members_only, plaintext=False, **how)


@pytest.mark.parametrize("who", ["nobody", "stranger", "expired"])
def test_others_are_not(job, members_only, authority, stranger, who):
    how = {"ca": authority.ca}
    if who != "nobody":
        own = authority.issue("old", "DNS:old", PAST) if who == "expired" else stranger.issue("spy", "DNS:spy")
        how |= {"certificate": own.certificate, "key": own.key}
    refused(members_only, job, **how)
    test_members_are_admitted(job, members_only, authority)


def test_a_revoked_client_is_refused_and_told_so(job, authority):
    """Until the list is replaced and the server told."""
    member, former = authority.issue("ward", "DNS:ward"), authority.issue("former", "DNS:former")
    lists = authority.revoked("served", former)
    options = (*authority.issue("ward-server", LOCAL).served(), "--client-ca", authority.ca, "--timeout", IDLE)
    server = job.serve(*options, "--client-crl", lists)
    ways = {one: {"ca": authority.ca, "certificate": one.certificate, "key": one.key} for one in (member, former)}
    assert job.served_by(server, plaintext=False, **ways[member])
    outcome = ask(server.address, job.x, plaintext=False, **ways[former])
    assert named(outcome["error"], {"transport"})
    assert "refuses this party's certificate, since its issuer has revoked it" in outcome["error"]["message"]
    assert "has been revoked" in server.line(IDLE + SLACK)["error"]["message"]
    # The other is revoked now, and the first no more; with a list that is no list nothing changes.
    kept = authority.revoked("other", member).read_text()
    for content, admitted in (("none", member), (kept, former)):
        lists.write_text(content)
        server.signal(signal.SIGHUP)
        server.said("not reloaded" if content == "none" else "reloaded:")
        (refused,) = set(ways) - {admitted}
        assert "error" in ask(server.address, job.x, plaintext=False, **ways[refused])
        assert "has been revoked" in server.line(IDLE + SLACK)["error"]["message"]
        assert job.served_by(server, plaintext=False, **ways[admitted])
    server.close()


@pytest.mark.parametrize(
    ("lists", "word"),
    [
        ("absent", "holds no revocation list"),
        ("empty", "holds no revocation list"),
        ("a certificate", "holds no revocation list"),
        ("damaged", "cannot be read"),
        ("over", "is over; get the current one"),
        ("another's", "no revocation list of the authority of clients"),
        ("alone", "--client-ca"),
    ],
)
def test_unusable_revocation_lists_are_named_at_once(tacit, job, authority, stranger, tmp_path, lists, word):
    path = tmp_path / "lists.pem"
    if lists == "empty":
        path.write_text("")
    elif lists == "a certificate":
        path = authority.ca
    elif lists == "damaged":
        lines = authority.revoked("whole").read_text().splitlines()
        path.write_text("\n".join([lines[0], "AAAA" + lines[1][4:], *lines[2:]]))
    elif lists == "over":
        path = authority.revoked("over", days=PAST)
    elif lists in ("another's", "alone"):
        path = stranger.revoked("theirs")
    members = () if lists == "alone" else ("--client-ca", authority.ca)
    done = tacit("serve", job.model, "--listen", "127.0.0.1:0", *members, "--client-crl", path, "--json")
    assert done.code == 1
    assert named(done.json["error"], {"misuse"})
    assert word in done.json["error"]["message"]
    assert lists == "alone" or str(path) in done.json["error"]["message"]


def test_a_list_that_ends_while_the_server_runs_admits_nobody(job, authority):
    member = authority.issue("late", "DNS:late")
    now = datetime.datetime.now(datetime.UTC)
    days = tuple(f"{now + datetime.timedelta(seconds=seconds):%Y%m%d%H%M%SZ}" for seconds in (-60, 8))
    lists = authority.revoked("short", days=days)
    options = (*authority.issue("short-server", LOCAL).served(), "--client-ca", authority.ca, "--timeout", IDLE)
    server = job.serve(*options, "--client-crl", lists, "--metrics", "127.0.0.1:0")
    assert "over in 0 hour(s), and nobody is admitted then" in server.said("a revocation list")
    time.sleep(max(0, 9 - (datetime.datetime.now(datetime.UTC) - now).total_seconds()))
    how = {"ca": authority.ca, "certificate": member.certificate, "key": member.key}
    assert "error" in ask(server.address, job.x, plaintext=False, **how)
    assert "a revocation list (--client-crl) is over" in server.line(IDLE + SLACK)["error"]["message"]
    server.close()


def test_a_key_file_keeps_the_pin(job, tmp_path):
    """Over restarts and reloads; the key is made once, for its owner alone."""
    key = tmp_path / "server.key"
    server = job.serve("--key-file", key, "--timeout", IDLE)
    content = key.read_bytes()
    assert key.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["server.key"]
    pin = server.pin
    server.signal(signal.SIGHUP)
    server.said("reloaded:")
    assert job.served_by(server, plaintext=False, pin=pin)
    server.close()
    server = job.serve("--key-file", key, "--timeout", IDLE)
    assert (server.pin, key.read_bytes()) == (pin, content)
    assert job.served_by(server, plaintext=False, pin=pin)
    key.chmod(0o640)
    server.signal(signal.SIGHUP)
    assert "chmod 600" in server.said("not reloaded")
    assert job.served_by(server, plaintext=False, pin=pin)
    server.close()


@pytest.mark.parametrize(
    ("file", "word"),
    [("shared", "chmod 600"), ("no key", "holds no private key"), ("nowhere", "cannot be made"), ("two", "--key-file")],
)
def test_unusable_key_files_are_named_at_once(tacit, job, authority, tmp_path, file, word):
    key = tmp_path / "server.key"
    more = authority.issue("two", LOCAL).served() if file == "two" else ()
    if file in ("shared", "no key"):
        key.write_bytes(authority.key.read_bytes() if file == "shared" else b"none")
        key.chmod(0o644 if file == "shared" else 0o600)
    key = tmp_path / "no" / "server.key" if file == "nowhere" else key
    done = tacit("serve", job.model, "--listen", "127.0.0.1:0", "--key-file", key, *more, "--json")
    assert done.code == 1
    assert named(done.json["error"], {"misuse"})
    assert word in done.json["error"]["message"]
    assert file != "two" or not key.exists()


@pytest.mark.parametrize("files", ["absent", "empty", "swapped", "mismatched"])
def test_unusable_certificates_are_named_at_once(tacit, job, authority, stranger, tmp_path, files):
    ours, theirs = authority.issue("a", LOCAL), stranger.issue("b", LOCAL)
    (tmp_path / "empty").write_text("")
    pair = {
        "absent": (tmp_path / "no.pem", tmp_path / "no.key"),
        "empty": (tmp_path / "empty", tmp_path / "empty"),
        "swapped": (ours.key, ours.certificate),
        "mismatched": (ours.certificate, theirs.key),
    }[files]
    done = tacit("serve", job.model, "--listen", "127.0.0.1:0", "--certificate", pair[0], "--key", pair[1], "--json")
    assert done.code == 1
    assert named(done.json["error"], {"misuse", "transport"})


@pytest.mark.parametrize(
    ("kind", "party", "at"),
    list(itertools.product(["flip", "cut"], [TO_SERVER, TO_CLIENT], [0, 700, 5_000, 20_000, 28_000])),
)
def test_tampering_below_tls(job, pinned, kind, party, at):
    """Byte `at` of one direction, TLS framing included, is inverted, or everything from it on is lost."""

    def raw(sender: str, seen: int, data: bytes) -> bytes:
        if sender != party or not seen <= at < seen + len(data):
            return data
        if kind == "cut":
            raise Cut
        position = at - seen
        return data[:position] + bytes([data[position] ^ 0x01]) + data[position + 1 :]

    with Relay(pinned.address, raw=raw) as relay:
        outcome = ask(relay.address, job.x, plaintext=False, pin=pinned.pin)
        assert outcome["seconds"] < IDLE + SLACK
        assert named(outcome["error"], {"transport"})
        assert named(pinned.line(IDLE + SLACK)["error"], {"transport"})
    assert job.served_by(pinned, plaintext=False, pin=pinned.pin)


@pytest.mark.parametrize("order", [Cut, Stall], ids=["gone", "silent"])
def test_a_server_knows_whether_its_client_saw_the_end(job, pinned, order):
    """The last message is lost below TLS: the server did its part, and says that the client is gone."""
    sizes = dict.fromkeys((TO_SERVER, TO_CLIENT), 0)

    def count(sender: str, seen: int, data: bytes) -> bytes:
        sizes[sender] = seen + len(data)
        return data

    with Relay(pinned.address, raw=count) as relay:
        assert job.right(ask(relay.address, job.x, plaintext=False, pin=pinned.pin))
        assert pinned.line(30)["end"] == "finished"
        time.sleep(0.3)  # the server's own goodbye is on its way through the relay
    goodbye, room = 24, 10

    def lose(sender: str, seen: int, data: bytes) -> bytes:
        if sender == TO_CLIENT and seen + len(data) > sizes[sender] - goodbye - room:
            raise order
        return data

    with Relay(pinned.address, raw=lose) as relay:
        outcome = ask(relay.address, job.x, plaintext=False, pin=pinned.pin)
        assert named(outcome["error"], {"transport"})
        line = pinned.line(IDLE + SLACK)
        assert (line["end"], "error" in line) == ("client gone", False)
    assert job.served_by(pinned, plaintext=False, pin=pinned.pin)


def test_a_server_that_only_accepts(job):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        outcome = ask(address, job.x, plaintext=False, pin="0" * 64, connect_seconds=1, timeout_seconds=30)
    assert outcome["seconds"] < 1 + SLACK
    assert named(outcome["error"], {"transport"})
