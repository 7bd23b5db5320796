"""A model and a server of it elsewhere, which `evaluate` takes in the place of two processes on this machine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.batch.job import USUAL, map_private
from tacit.batch.worker import Sessions
from tacit.errors import MisuseError, TransportError
from tacit.model import Progress
from tacit.session.client import Client
from tacit.session.pair import Pair, Run, quality
from tacit.session.reveal import BUCKET, Reveal


@dataclass(frozen=True)
class Remote(Pair):
    """A model whose inputs go to the server or door that a `client` knows, in many sessions.

    With `results` (a file) an evaluation goes on where one before it ended. Of what `Pair` has only the model counts,
    and `reveal` where the server tells buckets.
    """

    client: Client | None = None
    how: Sessions = USUAL
    results: Path | None = None

    def run(self, x: NDArray[np.float32], y: NDArray[np.int64] | None, progress: Progress | None = None) -> Run:
        """All inputs `x` (N, *shape); `y` (N,) are their labels, if known.

        Raises `TransportError` where inputs are left without a result, which a second run with the same file asks for.
        """
        if self.client is None:
            raise MisuseError("name the server: --server HOST:PORT")
        how = self.how
        mapped = map_private(
            self.client,
            x,
            results=self.results,
            inputs_per_session=how.inputs,
            workers=how.workers,
            pool=how.pool,
            tries=how.tries,
            progress=progress,
        )
        if mapped.failed:
            name, why = next(iter(mapped.failed.items()))
            again = f"; run it again with --results {self.results}" if self.results else ""
            raise TransportError(f"{len(mapped.failed)} of {len(x)} inputs have no result, input {name}: {why}{again}")
        report: dict[str, Any] = {
            **{name: mapped.header[name] for name in ("graph_digest", "reveal", "output_scale", "labels")},
            "model": str(self.model.path),
            "server": self.client.server,
            **mapped.report,
            **quality(self.model, x, y, mapped.prediction, self.learnt(mapped.header["reveal"])),
        }
        return Run(mapped.prediction, report)

    def learnt(self, word: str) -> Reveal:
        """What the server tells; raises `MisuseError` for buckets whose edges nobody said."""
        if word != BUCKET:
            return Reveal(word)
        own = Reveal.of(self.reveal)
        if own.word != BUCKET:
            raise MisuseError(
                "the server tells buckets, whose edges are its secret: say --reveal bucket:EDGES as it does"
            )
        return own
