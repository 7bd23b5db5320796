"""The client: it holds the input, talks to a server, and alone learns the result."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit import _core
from tacit.data import links
from tacit.data.links import Link
from tacit.data.parts import apart, joined, unit_of_each
from tacit.data.ranges import KEYS, Bounds
from tacit.data.schema import Schema
from tacit.data.schema import read as read_schema
from tacit.data.tables import by_column, is_frame
from tacit.data.text import Text
from tacit.errors import MisuseError
from tacit.importers.source import Part
from tacit.model import Progress
from tacit.session.drafts import Draft
from tacit.session.generate import Manner, Piece, generate
from tacit.session.patience import timeouts
from tacit.session.reveal import BUCKET, buckets
from tacit.session.sampling import Sampling

CONNECT_SECONDS = 10.0
TIMEOUT_SECONDS = 30.0
SESSION_SECONDS = 3600.0
MOST_INPUTS = 1_000_000
ADDED_PART = 0.25
"""The part of what shares of results hold that may be added to them."""
LONGEST_RETRY_SECONDS = 1e6

Notice = Callable[[str, float, str | None], None]
"""What happens while a client waits for its turn: a word, a number and a reason."""


@dataclass(frozen=True)
class Prediction:
    """What a session gave: its outputs and its report.

    The outputs are integers (N, outputs), or class numbers (N, 1), or (N, 2) with what says their probability.
    """

    outputs: NDArray[np.int64]
    report: dict[str, Any]

    @property
    def reveals_logits(self) -> bool:
        """Whether the outputs are logits rather than class numbers."""
        return bool(self.report["reveal"] == "output")

    @property
    def classes(self) -> NDArray[np.int64]:
        """Class numbers (N,): the first largest logit, or what the server revealed."""
        return classes(self.outputs) if self.reveals_logits else self.outputs[:, 0]

    @property
    def names(self) -> list[str]:
        """The names of what `classes` number: of classes, where they have some, or of buckets from the lowest on."""
        count = buckets(self.report["plan"]["graph"]) if self.report["reveal"] == BUCKET else 0
        if count:
            return [f"bucket {at} of 0 to {count - 1}" for at in range(count)]
        labels: list[str] = self.report.get("labels", [])
        return labels

    @property
    def logits(self) -> NDArray[np.float64] | None:
        """Real outputs (N, outputs), None when only labels are revealed."""
        if not self.reveals_logits:
            return None
        values: NDArray[np.float64] = self.outputs * np.float64(self.report["output_scale"])
        return values * unit_of_each(self.parts("outputs"))

    @property
    def link(self) -> Link | None:
        """What may be made of the results, by the server's plan, such as probabilities of scores."""
        return links.of(self.report["plan"]["graph"].get("link"))

    @property
    def estimates(self) -> NDArray[np.float64] | None:
        """Estimates (N, outputs) that the model's link makes of real outputs; None without both."""
        link, values = self.link, self.logits
        return None if link is None or values is None else link.estimates(values)

    def parts(self, end: str) -> tuple[Part, ...]:
        """The parts of an end, "inputs" or "outputs": where they are several, or have axes that the engine lacks."""
        return tuple(map(Part.of, self.report["plan"]["graph"].get(end, ())))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one result, without the batch; `outputs` and `logits` have its axes flattened."""
        graph, parts = self.report["plan"]["graph"], self.parts("outputs")
        return parts[0].shape if len(parts) == 1 else tuple(graph["tensors"][graph["output"]]["shape"])

    @property
    def bounds(self) -> Bounds:
        """The range of inputs that the server's model tells apart; values beside it were cut."""
        if self.report["encoding"] == KEYS:
            return Bounds.everything()
        graph = self.report["plan"]["graph"]
        scale = graph["tensors"][graph["input"]]["format"]["scale"]
        return Bounds.of(graph["input_range"], scale, self.parts("inputs"))

    @property
    def results(self) -> NDArray[np.float64] | None:
        """Real outputs (N, *shape), None when only labels are revealed; of several results see `named`."""
        values = self.logits
        return None if values is None else values.reshape(-1, *self.shape)

    @property
    def named(self) -> dict[str, NDArray[np.float64]]:
        """Each of several results by its name, (N, *shape); empty for one alone, and when only labels are revealed."""
        values, parts = self.logits, self.parts("outputs")
        return apart(parts, values) if values is not None and len(parts) > 1 else {}

    @property
    def probabilities(self) -> NDArray[np.float64] | None:
        """The probabilities of the classes (N,), right to four decimals; None unless the server reveals them."""
        if self.report["reveal"] != "probability":
            return None
        certain = np.float64(self.report["certain"])
        return np.minimum(np.float64(1.0), np.divide(certain, self.outputs[:, 1], dtype=np.float64))


def classes(outputs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Class numbers (N,) of outputs (N, outputs); the first maximum wins."""
    return np.asarray(np.argmax(outputs, axis=1), np.int64)


@dataclass(frozen=True)
class Client:
    """Where the server is and how to know it: by its key's `pin`, or a `ca` file, or not at all.

    `plaintext` works on loopback only. `certificate` and `key` (PEM files) are for servers that
    ask for a client certificate. It gives up after `connect_seconds` without a connection,
    `timeout_seconds` without a byte, or `session_seconds` in all. It computes in
    `threads` (1 to 64, whatever the server's). `network` imitates a link (lan, wan, RTTms,Mbps), as the
    server must too. `accept_leakage` agrees to a suite that leaks more than the result; else it is refused.
    `keys` names the files NAME.secret and NAME.keys of `tacit keys`, for models of suite lola; else keys are fresh.
    `passphrase` opens NAME.secret where that is encrypted.
    `plan_digest`, `graph_digest` and `model_commitment` (64 hexadecimal digits, as `serve` prints them) are what the
    server must offer: the whole plan, its public graph whatever the link, and the commitment to its model file. A
    `card_key` is the public key of a signer whose card of that file it must show; the card is in the report then. A
    server that offers something else is refused with a `TransportError` before anything about an input is sent.
    `model` names one of a server that has several, `token` (a text) says who the client is to servers that ask.
    `retry_for` tries a session again, as a whole and with fresh randomness, for up to so many seconds when the server
    is full, about to stop, or gone; else a full server raises `BusyError`.
    `schema` (of a file X.schema, or one that was read) says how rows of a table become inputs.
    Inputs may have NaN, which stands for a missing value, or be infinite only with `missing`, for models of tables.
    `keep_keys` leaves something with the server by which the next session begins sooner, without new base OTs; the
    server can tell then that both sessions are of the same client. A copy of the client starts with none.
    `follow` goes to the server that the door of a fleet names; else the door passes the client on.
    """

    server: str
    pin: str | None = None
    ca: Path | None = None
    plaintext: bool = False
    certificate: Path | None = None
    key: Path | None = None
    timeout_seconds: float = TIMEOUT_SECONDS
    connect_seconds: float = CONNECT_SECONDS
    session_seconds: float = SESSION_SECONDS
    threads: int | None = None
    network: str | None = None
    accept_leakage: bool = False
    keys: Path | None = None
    model: str | None = None
    token: str | None = None
    retry_for: float = 0.0
    keep_keys: bool = True
    passphrase: str | None = field(default=None, repr=False)
    plan_digest: str | None = None
    graph_digest: str | None = None
    model_commitment: str | None = None
    card_key: str | None = None
    missing: bool = False
    follow: bool = True
    schema: Schema | Path | None = None
    kept: _core.KeptKeys = field(default_factory=_core.KeptKeys, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if sum((self.pin is not None, self.ca is not None, self.plaintext)) != 1:
            raise MisuseError("name exactly one way to know the server: --pin, --ca or --plaintext")
        if (self.certificate is None) != (self.key is None):
            raise MisuseError("--certificate and --key belong together")
        if not 0 <= self.retry_for <= LONGEST_RETRY_SECONDS:
            raise MisuseError(f"--retry-for is 0 to {LONGEST_RETRY_SECONDS:.0f} seconds")

    def options_json(self, missing: bool = False) -> str:
        """Options as `_core.predict` reads them; absent ones are left out. With `missing` inputs may have NaN."""
        names = ("pin", "ca", "plaintext", "certificate", "key", "threads", "network", "keys", "model", "token")
        offered = ("passphrase", "plan_digest", "graph_digest", "model_commitment", "card_key")
        values = {name: getattr(self, name) for name in (*names, *offered)}
        chosen = {name: value for name, value in values.items() if value is not None}
        options = {name: str(value) if isinstance(value, Path) else value for name, value in chosen.items()}
        leaking = {name: True for name in ("accept_leakage", "missing") if getattr(self, name)}
        leaking |= {"missing": True} if missing else {}
        leaking |= {} if self.follow else {"follow": False}
        retrying = {"retry_for": self.retry_for} if self.retry_for else {}
        return json.dumps({**options, **leaking, **retrying, "timeouts": timeouts(self)})

    def predict(
        self,
        x: NDArray[np.float32] | Mapping[str, NDArray[np.float32]] | Any,
        progress: Progress | None = None,
        notice: Notice | None = None,
    ) -> Prediction:
        """Run one session over the inputs `x`: (N, *shape), or a single input.

        With a `schema` it may be a data frame, or a mapping from names of columns to arrays (N,), which may have
        missing values where the model knows them; or a data frame of numbers without one, with columns in the model's
        order.

        Of a model with several inputs it is a mapping from their names to arrays (N, *shape); or an array (N, values)
        in which they lie flattened one after another, in the model's order. Inputs of a model with states are those of
        one stream, in order.

        `notice` is called with ("waiting", sessions before this one, None) while the server is busy, and with
        ("retrying", seconds, why) before another attempt. Raises `MisuseError`, `PeerError` or `TransportError`
        (`BusyError` of a server that is full or about to stop), naming the guilty side.
        """
        table = is_frame(x) or (self.schema is not None and isinstance(x, Mapping))
        if table:
            x = self.rows(x)
        if isinstance(x, Mapping):
            return self.predict_named(x, progress)
        kept = self.kept if self.keep_keys else None
        outputs, report = _core.predict(self.server, floats(x), self.options_json(table), progress, notice, kept)
        return Prediction(outputs, json.loads(report))

    def rows(self, x: Any) -> NDArray[np.float32]:
        """Inputs (N, features) of a data frame or of columns by their names.

        Raises `MisuseError` for columns that are missing, and for values that are no numbers.
        """
        columns = by_column(x)
        schema = read_schema(self.schema) if isinstance(self.schema, Path) else self.schema
        return (schema or Schema.plain(list(columns))).encode(columns)

    def predict_named(self, x: Mapping[str, NDArray[np.float32]], progress: Progress | None = None) -> Prediction:
        """Run one session over several inputs by their names, in the order that the server's plan says."""
        counts = [len(array) for array in x.values() if array.ndim]
        predictions: list[Prediction] = []
        with self.session(max(1, min(counts, default=1))) as session:
            rows = session.joined(x)
            for row in rows:
                predictions.append(session.predict(row))
                if progress is not None:
                    progress(len(predictions), len(rows))
        outputs = np.concatenate([prediction.outputs for prediction in predictions])
        return Prediction(outputs, {**predictions[-1].report, **session.report})

    def session(self, inputs: int) -> "Session":
        """Open a session of at most `inputs` inputs (1 to 1,000,000) that need not exist yet.

            with client.session(inputs=2) as session:
                first = session.predict(x)

        If the server runs with `--offline`, the session prepares runs whenever it waits for an
        input. If it runs with `--batch`, `inputs` counts batches, full or not. Raises
        `MisuseError`, `PeerError` or `TransportError`.
        """
        if not 1 <= inputs <= MOST_INPUTS:
            raise MisuseError(f"a session has 1 to {MOST_INPUTS} inputs, not {inputs}")
        kept = self.kept if self.keep_keys else None
        return Session(_core.Session(self.server, inputs, self.options_json(), kept))


class Session:
    """An open session with a server, from `Client.session`: one input, or up to a batch, at a time.

    As a context manager it says goodbye at the end of the block, with or without inputs left, and
    breaks off when the block raises. A pause between inputs must be shorter than the server's
    `timeout_seconds`, and all of them fit into `session_seconds`. After a `PeerError` or a
    `TransportError` the session has failed: further inputs get the same error.
    """

    def __init__(self, core: _core.Session) -> None:
        """Wrap an open session of the core."""
        self.core = core

    def __enter__(self) -> Self:
        """Give the session."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish, or break off after an exception."""
        if kind is None:
            self.finish()
        else:
            self.core.abandon()

    def joined(self, x: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        """Arrays by the names of the model's inputs as one array (N, values), as the server's plan wants it."""
        graph = self.report["plan"]["graph"]
        tensor = graph["tensors"][graph["input"]]
        parts = graph.get("inputs") or [{"name": tensor["name"], "shape": tensor["shape"]}]
        return joined(tuple(map(Part.of, parts)), x)

    def predict(
        self,
        x: NDArray[np.float32] | Mapping[str, NDArray[np.float32]],
        added: NDArray[np.float32] | None = None,
    ) -> Prediction:
        """Run one input `x`, (*shape) or (1, *shape), after what is being prepared.

        Of a model with several inputs `x` may be a mapping from their names to arrays. What a model with states keeps
        of an input stays shared between both parties until the next one.

        With a server that runs with `--batch B`, up to B inputs (N, *shape): they share one run. With `--pass P`, of a
        model with states, P inputs (P, *shape), which are run as they would be in this order.
        What is `added` to the results (N, outputs), in their units, the server does not see: where labels are revealed,
        the label is that of the sums. With Gumbel noise it is a sample of the softmax of the results.
        The prediction's report is that of the session so far. Raises `MisuseError` for an input
        that does not fit or is one too many (nothing is sent, the session goes on), `PeerError` or
        `TransportError`, also for what went wrong in the background since the last call.
        """
        own = None if added is None else floats(added)
        outputs, report = self.core.predict(floats(self.joined(x) if isinstance(x, Mapping) else x), own)
        return Prediction(outputs, json.loads(report))

    def remember(self, x: NDArray[np.float32]) -> dict[str, Any]:
        """Run one input `x`, (*shape) or (1, *shape), only for what the model's states become; give the report so far.

        With a server that runs with `--pass P`, or P inputs (P, *shape), which are run as they would be in this order.

        Nobody learns a result. Where the server reveals labels, what leads to them alone is not computed, which is
        cheaper, and the server sees which inputs these are. It is one of the session's inputs. Raises what `predict`
        raises.
        """
        self.core.remember(floats(x))
        return self.report

    def generate(  # noqa: PLR0913 (one parameter per choice)
        self,
        text: Text,
        prompt: str,
        tokens: int,
        temperature: float = 0.0,
        seed: int | None = None,
        *,
        draft: Draft | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> Iterator[Piece]:
        """The answer of a language model to a prompt, at most so many tokens of it, each as soon as it is known.

        `text` is the client's file of the model (`tacit.data.text.read(Path("X.text"))`). Each token takes one of the
        session's inputs, and of a model with steps each token of the prompt but the last. Where the server runs with
        `--pass P`, prompts are read P tokens at a time, and what fills up a run counts as tokens.
        Tokens are the best ones, or samples of the softmax over a `temperature` above 0: by noise of the client's,
        which the server does not see, and which a `seed` repeats. What a `draft` guesses to follow, such as
        `tacit.session.drafts.NGrams()`, is read with the last token, P tokens in each run of `--pass P`; the text is
        that of the model all the same, and the client learns the best token behind wrong guesses too.
        Samples are of the best `top_k` tokens alone, or of the best ones that have `top_p` of the probability together:
        that takes a server with `--reveal output`, from which the client learns the numbers of all tokens.
        Raises `MisuseError` for a model that writes no text, and what `predict` raises: the pieces that came before are
        the text so far.
        """
        plan, sampling = self.report["plan"], Sampling(temperature, seed, top_k, top_p)
        output = plan["graph"]["tensors"][plan["graph"]["output"]]
        most = output["format"]["scale"] * ADDED_PART * 2.0 ** (output["format"]["bits"] - 1)
        sampling.check(most, known=self.report["reveal"] == "output")
        manner = Manner(
            self.remember, int(plan["settings"].get("pass", 1)), math.prod(output["shape"]), sampling, draft
        )
        return generate(self.predict, text, prompt, tokens, manner)

    @property
    def ready(self) -> int:
        """Prepared runs that wait for their inputs: 0 to the server's `--offline`."""
        return self.core.ready

    @property
    def report(self) -> dict[str, Any]:
        """The cost up to the last result, or of everything once finished; pauses take no time in it."""
        report: dict[str, Any] = json.loads(self.core.report())
        return report

    def finish(self) -> dict[str, Any]:
        """Say goodbye, once the run that is being prepared is complete, and give the report.

        Raises `PeerError` or `TransportError` for what went wrong in the background since the last call.
        """
        self.core.finish()
        return self.report


def floats(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """`x` without gaps in memory; raises `MisuseError` unless it is float32."""
    if x.dtype != np.float32:
        raise MisuseError(f"the inputs are {x.dtype}; convert them with x.astype(np.float32)")
    return np.ascontiguousarray(x)
