"""Einsum and other products of matrices, by MatMul."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """An activation times a constant, one matrix for each place of the letters that all three have."""
    first, second, result = terms
    shared = [letter for letter in first if letter in second and letter in result]
    summed = [letter for letter in first if letter in second and letter not in result]
    if not summed:
        w.call.refuse(f"`{equation}` by a constant", "use Mul, or a product of matrices")
    kept = [letter for letter in first if letter not in second]
    made = [letter for letter in second if letter not in first]
    value = w.call.constants[names[1]]
    sizes = dict(zip(first, w.shape_of(names[0]), strict=True)) | dict(zip(second, value.shape, strict=True))
    count, rows, inner = (math.prod(sizes[letter] for letter in part) for part in (shared, kept, summed))
    leading = [count] if shared else []
    matrix = value.transpose([second.index(letter) for letter in (*shared, *summed, *made)])
    x = w.reshape(arranged(w, names[0], first, [*shared, *kept, *summed], sizes), *leading, rows, inner)
    product = w.put("MatMul", x, w.constant(matrix.reshape(*leading, inner, -1)))
    return result_of(w, product, [*shared, *kept, *made], result, sizes)


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
    """MatMul of a constant matrix by an activation, along the last axis but one; or of one by many constant ones."""
    constants = [index for index, name in enumerate(w.call.inputs) if name in w.call.constants]
    if len(constants) != 1:
        return None
    place = constants[0]
    matrix, name = w.call.constants[w.call.inputs[place]], w.call.inputs[1 - place]
    if matrix.ndim > MATRIX_AXES and math.prod(matrix.shape[:-2]) == 1:
        matrix = matrix.reshape(matrix.shape[-2:])
        if place == 1 and len(w.sizes.get(name, ())) >= MATRIX_AXES:
            product, size = w.put("MatMul", name, w.constant(matrix)), w.sizes[w.call.outputs[0]]
            return w.put("Reshape", product, w.numbers(*([-1, *size[1:]] if size[:1] == (1,) else size)))
    if matrix.ndim > MATRIX_AXES and len(w.sizes.get(name, ())) >= MATRIX_AXES:
        return by_many(w, name, matrix, first=place == 0)
    if place == 1 or matrix.ndim != MATRIX_AXES or name not in w.call.shapes or len(w.shape_of(name)) < MATRIX_AXES:
        return None
    shape = w.shape_of(name)
    return w.along(name, shape, len(shape) - 2, matrix)


def by_many(w: Writer, name: str, matrices: NDArray[Any], first: bool) -> str:
    """An activation times a constant matrix per head, or per other leading axes: a grouped convolution of rows.

    Leading axes along which the matrices are the same are positions of the convolution.
    """
    result = w.sizes[w.call.outputs[0]]
    rank = len(result)
    size = (1,) * (rank - len(w.sizes[name])) + w.sizes[name]
    stack = matrices.reshape((1,) * (rank - matrices.ndim) + matrices.shape)
    stack = stack if first else np.swapaxes(stack, -1, -2)  # (..., outputs, inputs)
    batched = size[:1] == result[:1] == (1,)
    leading = range(int(batched), rank - 2)
    groups = [axis for axis in leading if stack.shape[axis] > 1]
    free = [axis for axis in leading if axis not in groups]
    inner, kept = (rank - 2, rank - 1) if first else (rank - 1, rank - 2)
    outputs, inputs = stack.shape[-2:]
    first_axis = -1 if batched else 1
    x = w.put("Reshape", name, w.numbers(*([-1, *size[1:]] if batched else size)))
    if any(size[axis] != result[axis] for axis in leading):
        size = (*result[:-2], *size[-2:])
        x = w.put("Expand", x, w.numbers(*size))
    order = [*([0] if batched else []), *groups, inner, *free, kept]
    count, positions = (math.prod(size[axis] for axis in part) for part in (groups, [*free, kept]))
    turned = w.put("Transpose", x, perm=order)
    image = w.put("Reshape", turned, w.numbers(first_axis, count * inputs, positions, 1))
    kernel = w.constant(stack.reshape(count * outputs, inputs, 1, 1))
    made = w.put("Conv", image, kernel, group=count, kernel_shape=[1, 1])
    lengths = [outputs if axis == inner else size[axis] for axis in order]
    back = w.put("Reshape", made, w.numbers(*([-1, *lengths[1:]] if batched else lengths)))
    return w.put("Transpose", back, perm=[order.index(axis) for axis in range(rank)])


MATRIX_AXES = 2
PRODUCTS: Mapping[str, Callable[[Writer], str | None]] = {
    "Einsum": einsum,
    "MatMul": matmul,
}
