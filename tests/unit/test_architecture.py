"""The page on the architecture names files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PATH = re.compile(r"`((?:crates|python|docs|tests|scripts|bench|fuzz)(?:/[\w.-]+)*|[\w-]+\.(?:md|toml))`")
NAMED = sorted(set(PATH.findall(PAGE.read_text(encoding="utf-8"))))


def test_the_page_names_the_crates():
    crates = {f"crates/{path.parent.name}" for path in ROOT.glob("crates/*/Cargo.toml")}
    assert crates <= set(NAMED)


@pytest.mark.parametrize("path", NAMED)
def test_named_paths_exist(path):
    assert (ROOT / path).exists(), f"{PAGE.name} names {path}, which does not exist"
