"""All models of the zoo: a family is a module with `ENTRIES`, and a line here."""

from tacit_lab.zoo import estimators, shipped, signals, text, vision
from tacit_lab.zoo.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    *vision.ENTRIES,
    *text.ENTRIES,
    *signals.ENTRIES,
    *estimators.ENTRIES,
    *shipped.ENTRIES,
)
