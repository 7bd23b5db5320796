"""The table of bits per primitive: by the sources, above the floor, and the same in every text."""

import re
import sys

import lattice_estimate
import pytest
import security_bits
from security_bits import FLOOR, PAGE, ROOT, main, page, primitives

TEXTS = ("SECURITY.md", "docs/protocols/transfer.md", "docs/protocols/garbled.md")
"""Where the search for Delta is spoken of in powers of two."""


def test_the_page_is_what_the_sources_say(monkeypatch):
    assert PAGE.read_text() == page()
    monkeypatch.setattr(sys, "argv", ["security_bits.py", "--check"])
    assert main() == 0


def test_no_primitive_is_below_the_floor():
    bits = {one.name: one.bits for one in primitives()}
    assert min(bits.values()) >= FLOOR
    assert all(value >= 134 for name, value in bits.items() if name.startswith("Ferret's parities"))
    assert bits["Ferret's trees"] > bits["garbled circuits"] == bits["pads of OTs, tables of up to 256"] == FLOOR


@pytest.mark.parametrize("text", TEXTS)
def test_texts_agree_with_the_table(text):
    found = {int(bits) for bits in re.findall(r"2\^-?(1[0-2]\d)\b", (ROOT / text).read_text())}
    assert FLOOR in found
    assert found <= {FLOOR, 125, 127, 128}, "a number that the table does not have"


def test_a_page_that_is_out_of_date_and_a_weak_primitive_fail(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["security_bits.py", "--check"])
    monkeypatch.setattr(security_bits, "constant", lambda *_: 256)
    assert main() == 1
    error = capsys.readouterr().err
    assert "pads of OTs, tables of up to 256: 119.0 bits, 123 wanted" in error
    assert "out of date" in error


def test_lattices_have_128_bits_and_the_texts_say_so():
    lattices = {one.name: one for one in primitives() if one.floor == 128}
    assert len(lattices) == len(security_bits.lattice_sets.sets()) > 40
    assert all(one.bits >= 128 for one in lattices.values())
    text = (ROOT / "SECURITY.md").read_text()
    named = re.search(r"K at most 52 \(([\d.]+) bits\), degree 4096 with K at most 64 \(([\d.]+)\)", text)
    rlwe = [f"{lattices[f'RLWE, q = 2^K: N = {size} bits'].bits:.1f}" for size in ("2048, 52", "4096, 64")]
    assert list(named.groups()) == rlwe
    limits = [one.bits for one in security_bits.lattice_sets.limits() if one.use == "limit of BFV"]
    moduli = " at most {}, {}, {} and {} for degrees 4096 to 32768".format(*limits[1:])
    assert moduli in text


def test_a_weak_lattice_fails(monkeypatch, capsys):
    weak = security_bits.lattice_sets.Set(2048, 54, "limit of BFV", "crates/he/src/bfv/params.rs")
    monkeypatch.setattr(security_bits.lattice_sets, "sets", lambda: [weak])
    monkeypatch.setattr(sys, "argv", ["security_bits.py", "--check"])
    assert main() == 1
    assert "limit of BFV: N = 2048, 54 bits: 125.4 bits, 128 wanted" in capsys.readouterr().err
    assert lattice_estimate.main() == 1
    assert "125.4" in capsys.readouterr().err
