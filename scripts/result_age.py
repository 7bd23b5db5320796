"""How old stored results are: which version of the protocol they were measured with.

Every file of bench/results names a commit and, beside it, the version of the protocol that this commit speaks.
`scripts/result_tables.py` and `scripts/paper_pages.py` say below each table whether the code speaks another version
since, so that a change of the wire makes `make check` fail until the pages say so, and refuse files that say nothing.
Results of float models alone have `"none"` in its place: no change of the wire changes them. Some versions change the
bytes of one kind of sessions only (`NARROW`); results of all others hold.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
SOURCE = "crates/runtime/src/session/opening.rs"
"""Where the version is a constant."""
FLOATS = "none"
"""In place of a version: no protocol takes part."""
LANGUAGE_MODELS = "language model"
"""What stands as the `kind` of results of sessions that keep keys and values."""
SLOW_LINK = "plan for a slow link"
"""What stands as the `kind` of results of plans for links of 100 Mbit/s and less."""
SLICED_POOLS = "max pools in slices"
"""What stands as the `kind` of results of networks with max pools that are too large for a step."""
ORDER = "order of messages"
"""A version that sends the same bytes in another order; no result has this `kind`."""
NARROW = {24: LANGUAGE_MODELS, 25: SLOW_LINK, 26: SLICED_POOLS, 27: ORDER}
"""Versions that changed the bytes of one kind of results, and of no other."""
UNTOLD = ("chromium.json", "papers/ufo-tradeoff.json")
"""Files from before results named their commits; what writes them does now. No other may be without one."""


def spoken(root: Path = ROOT) -> int:
    """The version of the protocol that the code speaks. Raises `SystemExit` where it cannot be found."""
    found = re.search(r"pub const PROTOCOL: u32 = (\d+);", (root / SOURCE).read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(f"{SOURCE} names no PROTOCOL; scripts/result_age.py reads it there")
    return int(found[1])


def age(entry: dict[str, Any], now: int) -> str:
    """The version of the protocol of a result, in words, beside the one that the code speaks `now`.

    Raises `SystemExit` for a result that names no version, or one that is yet to come.
    """
    protocol = entry.get("protocol")
    if protocol == FLOATS:
        return "of float models, without a protocol"
    if not isinstance(protocol, int) or not 0 < protocol <= now:
        raise SystemExit(f"a result of commit {entry.get('commit')} names protocol {protocol}; the code speaks {now}")
    if protocol == now:
        return f"protocol {protocol}"
    later = range(protocol + 1, now + 1)
    if all(version in NARROW and NARROW[version] != entry.get("kind") for version in later):
        return f"protocol {protocol}, the same bytes in protocol {now} of this code"
    return f"protocol {protocol}, older than protocol {now} of this code"


def silent(content: Any) -> Iterator[str]:
    """Commits in a file of results beside which no version of the protocol stands, but those of other files."""
    if isinstance(content, list):
        for value in content:
            yield from silent(value)
    elif isinstance(content, dict):
        of_another = "file" in content
        told = isinstance(content.get("protocol"), int) or content.get("protocol") == FLOATS
        if "commit" in content and not of_another and not told:
            yield str(content["commit"])
        for value in content.values():
            yield from silent(value)


def commits(content: Any) -> int:
    """How many commits a file of results names."""
    if isinstance(content, list):
        return sum(map(commits, content))
    if isinstance(content, dict):
        return ("commit" in content) + sum(map(commits, content.values()))
    return 0


def problems(results: Path = RESULTS) -> list[str]:
    """What is wrong with files of a folder of results: no commit, or a commit without a version of the protocol."""
    found = []
    for path in sorted(results.rglob("*.json")):
        name, content = str(path.relative_to(results)), json.loads(path.read_text(encoding="utf-8"))
        if not commits(content) and name not in UNTOLD:
            found.append(f"{name} names no commit")
        found += [f"{name}: commit {commit} has no protocol beside it" for commit in dict.fromkeys(silent(content))]
    return found
