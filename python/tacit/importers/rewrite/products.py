"""Einsum and other products of matrices, by MatMul."""

import math
from collections.abc import Callable, Mapping

from tacit.importers.rewrite.writer import Writer


def einsum(w: Writer) -> str:
    """Einsum of two operands that is a product of matrices, of an activation and a constant or of two activations."""
    equation = w.call.attributes["equation"].replace(" ", "")
    left, _, result = equation.partition("->")
    terms = left.split(",")
    if "..." in equation or not result or len(terms) != 2:
        w.call.refuse(f"`{equation}`", "write the letters of two operands and of the result")
    if any(len(set(term)) < len(term) for term in (*terms, result)):
        w.call.refuse(f"`{equation}`, which takes a diagonal", "use each letter once per operand")
    if any(letter not in result and letter not in terms[1 - k] for k in (0, 1) for letter in terms[k]):
        w.call.refuse(f"`{equation}`, which sums one operand alone", "use ReduceSum before it")
    names = list(w.call.inputs)
    if names[0] in w.call.constants:
        names, terms = names[::-1], terms[::-1]
    if names[0] in w.call.constants or terms[0][0] != result[0]:
        w.call.refuse(f"`{equation}`", "keep the batch in front")
    batch = result[0]
    if names[1] in w.call.constants:
        return by_constant(w, names, (terms[0][1:], terms[1], result[1:]), equation)
    if terms[1][0] != batch:
        w.call.refuse(f"`{equation}`", "keep the batch in front of both operands")
    return of_two(w, names, (terms[0][1:], terms[1][1:], result[1:]))


def by_constant(w: Writer, names: list[str], terms: tuple[str, str, str], equation: str) -> str:
    """An activation times a constant: letters of both that are in the result too are refused."""
    first, second, result = terms
    summed = [letter for letter in first if letter in second]
    if any(letter in result for letter in summed) or not summed:
        w.call.refuse(f"`{equation}` by a constant", "use a product of matrices")
    kept = [letter for letter in first if letter not in second]
    made = [letter for letter in second if letter not in first]
    value = w.call.constants[names[1]]
    sizes = dict(zip(first, w.shape_of(names[0]), strict=True)) | dict(zip(second, value.shape, strict=True))
    inner = math.prod(sizes[letter] for letter in summed)
    matrix = value.transpose([second.index(letter) for letter in (*summed, *made)]).reshape(inner, -1)
    rows = arranged(w, names[0], first, [*kept, *summed], sizes)
    shape = (math.prod(sizes[letter] for letter in kept), inner)
    product = w.put("MatMul", w.reshape(rows, *shape), w.constant(matrix))
    return result_of(w, product, [*kept, *made], result, sizes)


def of_two(w: Writer, names: list[str], terms: tuple[str, str, str]) -> str:
    """Two activations multiplied, for each place of the letters that all three have."""
    first, second, result = terms
    sizes = dict(zip(first, w.shape_of(names[0]), strict=True)) | dict(zip(second, w.shape_of(names[1]), strict=True))
    shared = [letter for letter in first if letter in second and letter in result]
    summed = [letter for letter in first if letter in second and letter not in result]
    rows, columns = ([k for k in term if k not in shared and k not in summed] for term in (first, second))
    count = {
        part: math.prod(sizes[k] for k in letters)
        for part, letters in (("shared", shared), ("summed", summed), ("rows", rows), ("columns", columns))
    }
    left = arranged(w, names[0], first, [*shared, *rows, *summed], sizes)
    right = arranged(w, names[1], second, [*shared, *summed, *columns], sizes)
    a = w.reshape(left, count["shared"], count["rows"], count["summed"])
    b = w.reshape(right, count["shared"], count["summed"], count["columns"])
    return result_of(w, w.put("MatMul", a, b), [*shared, *rows, *columns], result, sizes)


def arranged(w: Writer, x: str, have: str, want: list[str], sizes: Mapping[str, int]) -> str:
    """Write `x` with its letters in another order, as one axis."""
    return w.permute(x, [sizes[letter] for letter in have], [have.index(letter) for letter in want])


def result_of(w: Writer, x: str, have: list[str], want: str, sizes: Mapping[str, int]) -> str:
    """Write the result in its own order and shape."""
    flat = w.permute(x, [sizes[letter] for letter in have], [have.index(letter) for letter in want])
    return w.reshape(flat, *w.call.output_shape)


def matmul(w: Writer) -> str | None:
    """MatMul of a constant matrix by an activation: a product along the last axis but one."""
    if w.call.inputs[0] not in w.call.constants or w.call.inputs[1] in w.call.constants:
        return None
    matrix, shape = w.call.constants[w.call.inputs[0]], w.shape_of(w.call.inputs[1])
    if matrix.ndim != 2 or len(shape) < 2:
        return None
    return w.along(w.call.inputs[1], shape, len(shape) - 2, matrix)


PRODUCTS: Mapping[str, Callable[[Writer], str | None]] = {
    "Einsum": einsum,
    "MatMul": matmul,
}
