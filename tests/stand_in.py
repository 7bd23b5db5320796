"""`tacit` for blocks of the documentation: `serve` goes to the background, on a port that is free.

Later commands that name its address or the words for its pin get the real ones. TACIT_SERVED names the file with a line
per server: what was asked for, where it listens, its pin and its process.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

PINS = ("PIN", "4f0c...e1")
START_SECONDS = 60.0
TACIT = [sys.executable, "-m", "tacit"]


def record() -> Path:
    """The file of servers."""
    return Path(os.environ["TACIT_SERVED"])


def servers() -> list[dict[str, str]]:
    """All servers so far."""
    return [json.loads(line) for line in record().read_text().splitlines()] if record().exists() else []


def replaced(text: str) -> str:
    """A text with the real addresses and the last pin."""
    for server in reversed(servers()):
        text = text.replace(server["asked"], server["address"])
    for word in PINS:
        text = text.replace(word, servers()[-1]["pin"] or "") if servers() and word in text else text
    return text


def serve(arguments: list[str]) -> None:
    """Start a server and wait until it listens."""
    place = arguments.index("--listen") + 1
    asked, arguments[place] = arguments[place], "127.0.0.1:0"
    log = record().with_suffix(f".{len(servers())}.log")
    errors = log.with_suffix(".err")
    with log.open("w") as output, errors.open("w") as complaints:
        command = [*TACIT, *arguments, "--json"]
        process = subprocess.Popen(command, stdout=output, stderr=complaints, start_new_session=True)
    end = time.monotonic() + START_SECONDS
    while not (said := log.read_text()).endswith("\n"):
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"the server did not start: {said}{errors.read_text()}")
        time.sleep(0.05)
    if not said.startswith('{"listening"'):
        sys.exit(said)
    line = json.loads(said.splitlines()[0])
    with record().open("a") as file:
        known = {"asked": asked, "address": line["listening"], "pin": line["pin"], "process": process.pid}
        file.write(json.dumps(known) + "\n")


def main(arguments: list[str]) -> None:
    """Run one command."""
    if arguments[:1] == ["serve"]:
        serve(arguments)
    else:
        sys.exit(subprocess.run([*TACIT, *map(replaced, arguments)], check=False).returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
