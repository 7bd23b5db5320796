"""Options of `tacit bench` that only some suites have."""

import json

import pytest
from tacit.cli.application import app
from tacit.cli.bench_options import folding
from tacit.cli.options import Suite
from tacit.errors import MisuseError
from typer.testing import CliRunner


def test_only_the_default_suite_folds_inputs() -> None:
    assert folding(None, Suite.GALA) == {}
    assert folding(3, Suite.AUTO) == {"folded": 3}
    with pytest.raises(MisuseError, match="only suite auto has --folded"):
        folding(3, Suite.GALA)


def test_folded_inputs_take_fewer_bytes_once_keys_are_there() -> None:
    command = ["bench", "matmul", "--rows", "1", "--inner", "512", "--cols", "256", "--repeat", "1", "--json"]
    plain, folded = (
        json.loads(CliRunner().invoke(app, [*command, *options]).stdout) for options in ([], ["--folded", "4"])
    )
    online = [sum(made["phases"]["online"]["bytes"].values()) for made in (plain, folded)]
    assert folded["folded"] == 4
    assert folded["max_error"] <= 2
    assert online[1] < online[0] / 2
