"""Compile a function for SPU and share its inputs out, before any clock runs; runs in `.venv-peers`.

`python spu_prepare.py JOB.json` reads a job of `theirs.py`, and writes into its folder the program, a file of
shares for each party, and what plain float gives.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import spu
import spu_decoder
import spu_functions
from spu import libspu
from spu.utils import frontend
from spu_settings import CLIENT, SERVER, SHARED, config, pack

OWNERS = {"client": CLIENT, "server": SERVER, "shared": SHARED}


def inputs(job: dict[str, Any]) -> list[Any]:
    """The tensors of an operator, random under a fixed seed: the first has the values, the others are weights."""
    random = np.random.default_rng(0)
    low, high = job["range"]
    shapes = [tuple(shape) for shape in job["shapes"]]
    values = [random.uniform(low, high, shapes[0])]
    values += [random.uniform(-1, 1, shape) / np.sqrt(np.prod(shape[:-1])) for shape in shapes[1:]]
    return [value.astype(np.float32) for value in values]


def function(job: dict[str, Any]) -> tuple[Any, list[Any], list[int]]:
    """Give the function that SPU computes, its arguments, and the owner of each argument."""
    owner = OWNERS[job["owner"]]
    if "step" in job:
        step, arguments = spu_decoder.step_of(Path(job["step"]))
        return step, arguments, [owner, SHARED, SERVER]
    if "network" in job:
        run, weights = spu_functions.network(Path(job["network"]))
        return run, [np.load(job["input"]), weights], [owner, SERVER]
    values = inputs(job)
    return spu_functions.single(job["function"]), values, [owner] + [SERVER] * (len(values) - 1)


def main() -> None:
    """Entry point."""
    job = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(job["folder"])
    run, arguments, owned = function(job)
    leaves = [jax.tree_util.tree_leaves(argument) for argument in arguments]
    flat = [np.asarray(value) for argument in leaves for value in argument]
    owners = [owner for owner, argument in zip(owned, leaves, strict=True) for _ in argument]
    names = [f"in{index}" for index in range(len(flat))]
    options = libspu.CompilerOptions()
    options.enable_optimize_denominator_with_broadcast = True
    program, _ = frontend.compile(
        frontend.Kind.JAX,
        run,
        arguments,
        {},
        names,
        [libspu.Visibility.VIS_SECRET] * len(names),
        lambda leaves: [f"out{index}" for index in range(len(leaves))],
        copts=options,
    )
    (folder / "program").write_bytes(program.SerializeToString())
    share(job, folder, flat, owners)
    exact = spu_functions.exact(job["function"]) if "function" in job else run
    np.save(folder / "float.npy", np.asarray(exact(*arguments)))


def share(job: dict[str, Any], folder: Path, values: list[Any], owners: list[int]) -> None:
    """Shares of every value for each party; what has an owner is with its owner only."""
    io = spu.Io(2, config(job))
    shares = [
        io.make_shares(value, libspu.Visibility.VIS_SECRET, owner) for value, owner in zip(values, owners, strict=True)
    ]
    for party in (CLIENT, SERVER):
        packed: dict[str, Any] = {
            f"in{index}": np.frombuffer(pack(both[party]), np.uint8) for index, both in enumerate(shares)
        }
        np.savez(folder / f"party-{party}.npz", **packed)


if __name__ == "__main__":
    main()
