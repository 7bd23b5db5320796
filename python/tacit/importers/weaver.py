"""The state of the import of a sequence model: what is stored where, and what is a function of the mask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tacit.importers.call import Call, Operation, Shape
from tacit.importers.draft import Draft
from tacit.importers.layout import Masked, Places, Stored
from tacit.importers.masks import BITWISE, REARRANGING, Value, lies_in, masked, moved, of_bits
from tacit.importers.views import is_shown

Values = dict[str, Value]


@dataclass
class Weaver:
    """What is known while nodes are converted one after another; `sizes` have the batch of one.

    `extent` are rows and tokens of an input whose last rows, `masks` of them, are masks; zeros where it is something
    else.
    """

    input_name: str
    extent: Shape
    opset: int
    sizes: Mapping[str, Shape]
    readers: Mapping[str, int]
    draft: Draft
    values: Values = field(default_factory=dict)
    masks: int = 1

    @property
    def sequence(self) -> int:
        """How many tokens an input has."""
        return self.extent[1]

    def rearranged(self, call: Call) -> bool:
        """Convert a node that only moves elements of one activation, if it is one."""
        if call.operator not in REARRANGING or any(name not in call.constants for name in call.inputs[1:] if name):
            return False
        stored = self.values.get(call.inputs[0])
        if not isinstance(stored, Stored):
            return False
        parts = moved(call, stored.places, self.opset)
        if not all(places.size for places in parts):
            call.refuse("gives an empty tensor", "keep at least one element")
        if not all(is_shown(places, self.draft.size(stored)) for places in parts):
            stored = self.draft.unmoved(call, stored)
            parts = moved(call, stored.places, self.opset)
        for output, places in zip(call.outputs, parts, strict=True):
            alone = stored.exclusive and len(parts) == 1 and self.readers.get(output, 0) == 1
            self.values[output] = Stored(stored.name, places, output, alone)
        return True

    def bitwise(self, call: Call) -> bool:
        """Convert a node all of whose activations are functions of the mask, if it is one."""
        if call.operator not in BITWISE | REARRANGING:
            return False
        given = [name for name in call.inputs if name and name not in call.constants]
        bits = {name: bit for name in given if (bit := self.bits(self.values[name])) is not None}
        if len(bits) == len(given):
            self.values[call.outputs[0]] = masked(call, bits, self.opset)
        return len(bits) == len(given)

    def bits(self, value: Value) -> Masked | None:
        """A value as a function of the mask, if it is one."""
        if isinstance(value, Masked):
            return value
        rows = range(self.extent[0] - self.masks, self.extent[0])
        return of_bits(value.places) if lies_in(value, self.input_name, self.sequence, rows) else None

    def stored(self, call: Call, name: str) -> Stored:
        """The activation `name`; of the mask only its bits themselves are stored."""
        if name in call.constants:
            call.refuse(f"with a constant `{name}`", "give it an activation")
        value = self.values[name]
        if isinstance(value, Stored):
            return value
        if (value.off != 0).any() or (value.on != 1).any():
            call.refuse("of something made of the mask", "use the mask for scores and for sums over tokens only")
        return Stored(self.input_name, value.places, name)

    def written(self, call: Call, inputs: Sequence[str], operation: Operation, shape: Shape, places: Places) -> Values:
        """The one value of a node."""
        stored = self.draft.write(call, inputs, operation, shape, places)
        return {stored.tensor: replace(stored, exclusive=self.readers.get(stored.tensor, 0) == 1)}

    def followed(self, call: Call, stored: Stored) -> Values:
        """The value of a node that became part of the one before it."""
        output = call.outputs[0]
        return {output: replace(stored, tensor=output, exclusive=self.readers.get(output, 0) == 1)}
