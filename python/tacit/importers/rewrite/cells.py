"""One step of LSTM, GRU and RNN: gates of the input and a state in, the next state out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.importers.rewrite.writer import Writer

State = str | NDArray[np.float32] | None
"""An activation (N, directions, hidden), a constant (1, directions, hidden), or None where all of it is zero."""
ACTIVATIONS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "affine": (("alpha", 1.0), ("beta", 0.0)),
    "elu": (("alpha", 1.0),),
    "hardsigmoid": (("alpha", 0.2), ("beta", 0.5)),
    "leakyrelu": (("alpha", 0.01),),
    "relu": (),
    "scaledtanh": (("alpha", 1.0), ("beta", 1.0)),
    "sigmoid": (),
    "softplus": (),
    "softsign": (),
    "tanh": (),
    "thresholdedrelu": (("alpha", 1.0),),
}
"""Activation functions that a node may name, in lower case, and the defaults of their parameters."""
OPERATORS = {
    "elu": "Elu",
    "hardsigmoid": "HardSigmoid",
    "leakyrelu": "LeakyRelu",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
    "thresholdedrelu": "ThresholdedRelu",
}
"""The operators that compute an activation function alone."""


@dataclass(frozen=True)
class Function:
    """An activation function and its parameters."""

    kind: str
    parameters: tuple[tuple[str, float], ...] = ()

    def of(self, w: Writer, x: str) -> str:
        """Write the function of `x`."""
        given = dict(self.parameters)
        if self.kind in OPERATORS:
            return w.put(OPERATORS[self.kind], x, **given)
        alpha, beta = given["alpha"], given["beta"]
        if alpha == 0:
            w.call.refuse(f"with an activation {self.kind} of alpha 0", "use another activation function")
        if self.kind == "scaledtanh":
            return w.scale(w.put("Tanh", w.scale(x, beta)), alpha)
        scaled = w.scale(x, alpha)
        return scaled if beta == 0 else w.put("Add", scaled, w.number(beta))


@dataclass(frozen=True)
class Cell:
    """What a step computes: `recurrent` (directions, gates * hidden, hidden) is the matrix of the state.

    The gates of an LSTM are in the order input, forget, output, candidate; of a GRU update, reset, candidate.
    `bias` (directions, hidden) is what a GRU adds to the product of the state with the weights of the candidate
    before it is reset; None resets the state before that product. `joined` says that the rows of the candidate
    are twice as large, so that one sigmoid gives all gates: `tanh(x) = 2*sigmoid(2*x) - 1`.
    """

    w: Writer
    recurrent: NDArray[np.float32]
    functions: tuple[Function, ...]
    clip: float | None = None
    bias: NDArray[np.float32] | None = None
    joined: bool = False

    @property
    def parts(self) -> int:
        """How many directions there are."""
        return len(self.recurrent)

    @property
    def hidden(self) -> int:
        """How many values the state of one direction has."""
        return int(self.recurrent.shape[2])

    def product(self, state: State, first: int, end: int) -> State:
        """The state times the weights of gates from `first` to before `end`."""
        rows = self.recurrent[:, first * self.hidden : end * self.hidden]
        if state is None:
            return None
        if not isinstance(state, str):
            return np.asarray(np.einsum("ndh,dgh->ndg", state, rows), np.float32)
        if self.parts == 1:
            flat = self.w.put("MatMul", self.w.reshape(state, self.hidden), self.w.constant(rows[0].T))
        else:
            image = self.w.reshape(state, self.parts * self.hidden, 1, 1)
            kernel = self.w.constant(rows.reshape(-1, self.hidden, 1, 1))
            flat = self.w.put("Conv", image, kernel, group=self.parts)
        return self.w.reshape(flat, self.parts, rows.shape[1])

    def summed(self, *terms: State) -> str:
        """The sum of some terms, of which one at least is an activation."""
        names = [term for term in terms if isinstance(term, str)]
        names += [self.w.constant(term) for term in terms if isinstance(term, np.ndarray) and term.any()]
        total = names[0]
        for name in names[1:]:
            total = self.w.put("Add", total, name)
        return total

    def times(self, x: str, state: State) -> State:
        """A tensor times another one, which may be zero."""
        return None if state is None else self.w.put("Mul", x, self.named(state))

    def gate(self, x: str, first: int, end: int) -> str:
        """The gates from `first` to before `end` of a tensor of gates."""
        return self.w.slice(x, 1, first * self.hidden, end * self.hidden)

    def clipped(self, x: str) -> str:
        """What an activation function reads."""
        return x if self.clip is None else self.w.clip(x, -self.clip, self.clip)

    def named(self, state: State) -> str:
        """The state as a tensor; zero is one too."""
        if isinstance(state, str):
            return state
        zero = np.zeros((1, self.parts, self.hidden), np.float32)
        return self.w.constant(zero if state is None else state)


def lstm(cell: Cell, gates: str, state: State, memory: State) -> tuple[str, State]:
    """`c = forget*c + input*candidate` and `h = output*tanh(c)`."""
    w = cell.w
    total = cell.clipped(cell.summed(cell.product(state, 0, 4), gates))
    sigmoid, tanh, last = cell.functions
    if cell.joined:
        done = sigmoid.of(w, total)
        candidate = w.put("Sub", w.scale(cell.gate(done, 3, 4), 2.0), w.number(1.0))
    else:
        done = sigmoid.of(w, cell.gate(total, 0, 3))
        candidate = tanh.of(w, cell.gate(total, 3, 4))
    if memory is None:
        kept = w.put("Mul", cell.gate(done, 0, 1), candidate)
    else:
        # Products of their own leave gates and memory scales of their own, which one of both side by side would not.
        fresh = w.put("Mul", cell.gate(done, 0, 1), candidate)
        kept = w.put("Add", fresh, w.put("Mul", cell.gate(done, 1, 2), cell.named(memory)))
    return w.put("Mul", cell.gate(done, 2, 3), last.of(w, kept)), kept


def gru(cell: Cell, gates: str, state: State, _: State) -> tuple[str, State]:
    """`h = candidate + update*(h - candidate)`, where the candidate reads a part of the state, as `reset` says."""
    w = cell.w
    sigmoid, tanh = cell.functions
    fresh, others = cell.gate(gates, 2, 3), cell.gate(gates, 0, 2)
    if cell.bias is None:
        done = sigmoid.of(w, cell.clipped(cell.summed(cell.product(state, 0, 2), others)))
        total = cell.summed(cell.product(cell.times(cell.gate(done, 1, 2), state), 2, 3), fresh)
    else:
        addend = w.pad(others, [0, 0], [0, cell.hidden])
        bias = np.pad(cell.bias, [(0, 0), (2 * cell.hidden, 0)])[None]
        sums = cell.summed(cell.product(state, 0, 3), addend, bias)
        done = sigmoid.of(w, cell.clipped(cell.gate(sums, 0, 2)))
        total = cell.summed(cell.times(cell.gate(done, 1, 2), cell.gate(sums, 2, 3)), fresh)
    update = cell.gate(done, 0, 1)
    candidate = tanh.of(w, cell.clipped(total))
    if state is None:
        return w.put("Mul", w.put("Sub", w.number(1.0), update), candidate), None
    moved = w.put("Mul", update, w.put("Sub", cell.named(state), candidate))
    return w.put("Add", candidate, moved), None


def rnn(cell: Cell, gates: str, state: State, _: State) -> tuple[str, State]:
    """`h = tanh(gates)`."""
    return cell.functions[0].of(cell.w, cell.clipped(cell.summed(cell.product(state, 0, 1), gates))), None


STEPS: Mapping[str, Callable[[Cell, str, State, State], tuple[str, State]]] = {"GRU": gru, "LSTM": lstm, "RNN": rnn}
