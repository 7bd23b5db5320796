"""Recurrent layers (LSTM, GRU, RNN), one step of time after another.

One product takes all gates of the whole sequence from the input. Each step then adds the product of the state with
the recurrent weights. Both directions are one state with two parts, so that they need the rounds of one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.call import Call
from tacit.importers.rewrite.cells import ACTIVATIONS, STEPS, Cell, Function, State
from tacit.importers.rewrite.writer import Writer

Floats = NDArray[np.float32]
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Of each direction, whether it begins at the end of the sequence."""
ORDERS = {"LSTM": (0, 2, 1, 3), "GRU": (0, 1, 2), "RNN": (0,)}
"""The gates of ONNX in the order in which a cell has them."""
FUNCTIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
"""Activation functions of each direction, unless a node names others."""
STEP_NODES = {"LSTM": (20, 26), "GRU": (23, 29), "RNN": (5, 9)}
"""Nodes that a step becomes in the compiled model, of one direction and of two."""
MOST_NODES = 4000
"""Nodes that layers may become; a compiled model has at most 4096."""
LENGTHS, STATE, MEMORY, PEEPHOLES = 4, 5, 6, 7
"""Where inputs of a node are that it may lack."""


def recurrent(w: Writer) -> tuple[str, ...]:
    """One product of the whole sequence with the weights of the input, then the state step by step."""
    x, steps = sequence(w)
    backwards = DIRECTIONS.get(text(w.call.attributes.get("direction", "forward")))
    if backwards is None:
        w.call.refuse("in an unknown direction", "use forward, reverse or bidirectional")
    check(w.call, steps, len(backwards))
    cell = cell_of(w, len(backwards))
    products = gates_of_input(w, cell, x)
    state, memory = (initial(w, index) for index in (STATE, MEMORY))
    states: list[State] = []
    for step in range(steps):
        gates = gates_at(cell, products, [steps - 1 - step if turned else step for turned in backwards])
        state, memory = STEPS[w.call.operator](cell, gates, state, memory)
        states.append(state)
    outputs = [*w.call.outputs, "", ""]
    return (
        whole(cell, states, backwards) if outputs[0] else "",
        last(cell, states[-1]) if outputs[1] else "",
        last(cell, memory) if outputs[2] else "",
    )


def sequence(w: Writer) -> tuple[str, int]:
    """The input with the batch in front, and how many steps it has."""
    x = w.x
    size = w.sizes.get(x)
    if size is None or len(size) != 3:
        w.call.refuse(f"on `{x}`, whose sizes are not known", "export it for a fixed length of the sequence")
    if w.call.attributes.get("layout", 0):
        batch, steps, _ = size
    else:
        steps, batch, _ = size
        x = w.put("Transpose", x, perm=[1, 0, 2])
    if batch != 1:
        w.call.refuse("whose steps of time are the batch of the model", "let the model read (batch, time, features)")
    return x, steps


def check(call: Call, steps: int, parts: int) -> None:
    """Refuse what no step expresses, and more steps than a compiled model has room for."""
    most = MOST_NODES // STEP_NODES[call.operator][parts - 1]
    if steps > most:
        call.refuse(f"of {steps} steps, where {most} are possible", "cut inputs into shorter sequences")
    lengths = call.constant(LENGTHS, "length of the sequence")
    if lengths is not None and (lengths != steps).any():
        call.refuse("with a sequence_lens that differs from the length", "cut the input to the length that you run")
    peepholes = call.constant(PEEPHOLES, "peephole")
    if peepholes is not None and peepholes.any():
        call.refuse("with peepholes", "train it without them")
    if call.attributes.get("input_forget", 0):
        call.refuse("with input_forget=1", "use gates of their own for input and forgetting")


def cell_of(w: Writer, parts: int) -> Cell:
    """What a step computes."""
    call = w.call
    matrix = call.required(2, "recurrent weight")
    kinds = functions(call, parts)
    clip = call.attributes.get("clip")
    joined = call.operator == "LSTM" and clip is None and [kind.kind for kind in kinds[:2]] == ["sigmoid", "tanh"]
    before = bool(call.attributes.get("linear_before_reset", 0))
    cell = Cell(w, ordered(call, matrix, joined), kinds, None if clip is None else float(clip), None, joined)
    if call.operator == "GRU" and before:
        return replace(cell, bias=biases(w, cell)[1][:, 2 * cell.hidden :])
    return cell


def ordered(call: Call, value: NDArray[Any], joined: bool) -> Floats:
    """A tensor (directions, gates * hidden, ...) with its gates in the order of the cell, and as large as there."""
    order = ORDERS[call.operator]
    gates = value.reshape(len(value), len(order), -1, *value.shape[2:])[:, list(order)].astype(np.float32)
    if joined:
        gates[:, -1] *= 2
    return gates.reshape(value.shape)


def functions(call: Call, parts: int) -> tuple[Function, ...]:
    """The activation functions of a step, which must be the same in both directions."""
    names = [text(name) for name in call.attributes.get("activations", FUNCTIONS[call.operator] * parts)]
    alphas, betas = (list(call.attributes.get(f"activation_{role}", ())) for role in ("alpha", "beta"))
    found = []
    for name in names:
        if name.lower() not in ACTIVATIONS:
            call.refuse(f"with the activation {name}", f"use {', '.join(FUNCTIONS['LSTM'][:2])} or Relu")
        defaults = dict(ACTIVATIONS[name.lower()])
        for role, values in (("alpha", alphas), ("beta", betas)):
            if role in defaults and values:
                defaults[role] = float(values.pop(0))
        found.append(Function(name.lower(), tuple(defaults.items())))
    count = len(FUNCTIONS[call.operator])
    if len(found) != count * parts:
        call.refuse(f"with {len(found)} activation functions", f"name {count} for each direction")
    if parts == 2 and found[:count] != found[count:]:
        call.refuse("with other activation functions backwards", "use the same in both directions")
    return tuple(found[:count])


def biases(w: Writer, cell: Cell) -> tuple[Floats, Floats]:
    """The biases (directions, gates * hidden) of the products with the input and with the state."""
    count = cell.recurrent.shape[1]
    given = w.call.constant(3, "bias")
    if given is None:
        given = np.zeros((cell.parts, 2 * count), np.float32)
    first, second = (ordered(w.call, part, cell.joined) for part in (given[:, :count], given[:, count:]))
    return first, second


def gates_of_input(w: Writer, cell: Cell, x: str) -> str:
    """The product (batch, steps, directions * gates * hidden) of the whole sequence with the weights, and the bias."""
    weight = ordered(w.call, w.call.required(1, "weight"), cell.joined)
    ours, theirs = biases(w, cell)
    if cell.bias is not None:
        theirs = theirs.copy()
        theirs[:, 2 * cell.hidden :] = 0
    total = (ours + theirs).reshape(-1)
    product = w.put("MatMul", x, w.constant(weight.reshape(-1, weight.shape[2]).T))
    return w.put("Add", product, w.constant(total)) if total.any() else product


def gates_at(cell: Cell, products: str, places: Sequence[int]) -> str:
    """The gates (batch, directions, gates * hidden) of a step, which reads the sequence at a place by direction."""
    count = cell.recurrent.shape[1]
    parts = []
    for part, place in enumerate(places):
        row = cell.w.slice(products, 0, place, place + 1)
        parts.append(row if len(places) == 1 else cell.w.slice(row, 1, part * count, (part + 1) * count))
    return parts[0] if len(parts) == 1 else cell.w.put("Concat", *parts, axis=1)


def initial(w: Writer, index: int) -> State:
    """The state before the first step, with the batch in front."""
    name = w.call.inputs[index] if index < len(w.call.inputs) else ""
    if not name:
        return None
    batch_first = bool(w.call.attributes.get("layout", 0))
    if name in w.call.constants:
        value = np.asarray(w.call.constants[name], np.float32)
        value = value if batch_first else value.transpose(1, 0, 2)
        if len(value) != 1 and value.any():
            w.call.refuse("with a state for each example of the batch", "use one for all")
        return value[:1] if value.any() else None
    return name if batch_first else w.put("Transpose", name, perm=[1, 0, 2])


def whole(cell: Cell, states: Sequence[State], backwards: Sequence[bool]) -> str:
    """The states of all steps in order of time, as the node gives them."""
    w, parts = cell.w, []
    for part, turned in enumerate(backwards):
        names = [cell.named(state) for state in (states[::-1] if turned else states)]
        if cell.parts > 1:
            names = [w.slice(name, 0, part, part + 1) for name in names]
        rows = names[0] if len(names) == 1 else w.put("Concat", *names, axis=1)
        parts.append(w.reshape(rows, len(states), 1, cell.hidden))
    both = parts[0] if len(parts) == 1 else w.put("Concat", *parts, axis=2)
    return both if w.call.attributes.get("layout", 0) else w.put("Transpose", both, perm=[1, 2, 0, 3])


def last(cell: Cell, state: State) -> str:
    """The state after the last step, as the node gives it."""
    name = cell.named(state)
    return name if cell.w.call.attributes.get("layout", 0) else cell.w.put("Transpose", name, perm=[1, 0, 2])


def text(value: str | bytes) -> str:
    """An attribute's string."""
    return value.decode() if isinstance(value, bytes) else value


RECURRENT: Mapping[str, Callable[[Writer], tuple[str, ...]]] = {"GRU": recurrent, "LSTM": recurrent, "RNN": recurrent}
