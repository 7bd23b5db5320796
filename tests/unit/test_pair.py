"""What is said of a server process that ends early."""

import pytest
from tacit import MisuseError, TacitError
from tacit.session.pair import started

SILENT = "the server process: it ended without a word"
WAYS = {
    "": (TacitError, f"{SILENT}, with exit code 0"),
    "raise SystemExit(3)": (TacitError, f"{SILENT}, with exit code 3"),
    "import os; os.kill(os.getpid(), 9)": (TacitError, f"{SILENT}, killed by SIGKILL"),
    "raise SystemExit('error: the port is taken')": (MisuseError, "the port is taken"),
}


@pytest.mark.parametrize(("program", "ended"), WAYS.items())
def test_a_process_that_never_listens_is_said_to_have_ended_and_how(tmp_path, monkeypatch, program, ended):
    (tmp_path / "silent.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TacitError) as error, started(["silent"]):
        pass
    assert (error.type, str(error.value)) == ended
