"""Every table and figure of the papers of docs/papers: what it shows, which of our tables has it, or why none does."""

from typing import NamedTuple


class Item(NamedTuple):
    """A table, a figure or a claim of a paper.

    `tables` are names of `tacit reproduce`; `missing` says what of it is not reproduced, and why.
    """

    of: str
    shows: str
    tables: tuple[str, ...] = ()
    missing: str = ""


ILLUSTRATION = "an illustration without numbers"
OTHERS = "other systems' columns are theirs; only ratios to ours compare"
NO_PYTORCH = "needs a training run for each row"
ROBERTA = f"RoBERTa: {NO_PYTORCH}"
PLAIN_RELU = "rows with a softmax of plain ReLUs: it is not among our functions"
ONE_FUNCTION = "rows of one function alone that have no trained model, and RoBERTa: each needs a training run"

PAPERS: dict[str, tuple[Item, ...]] = {
    "ufo": (
        Item(
            "table I",
            "bits of extension, truncation and re-quantisation",
            (),
            "formulas; ours, without a term of 128 bits for every bit, are the costs that `tacit plan` adds up",
        ),
        Item("tables II and III", "notation; a comparison in words", (), "no numbers"),
        Item(
            "figure 1",
            "traffic of a ResNet-50 block under CrypTFlow2 and SiRNN; outliers of weights",
            (),
            "profiles of other systems; our own trained network has the outliers' remedy, re-weighted bits",
        ),
        Item(
            "figure 2",
            "encryption beside transfers at few bits",
            (),
            "a sketch; `ufo-table4` has a convolution under encryption in bytes",
        ),
        Item("figures 3 to 6, 8, 10 to 12", "how the protocols work", (), ILLUSTRATION),
        Item(
            "figures 7 and 17",
            "bytes of every block of ResNet-32",
            ("ufo-figure17",),
        ),
        Item(
            "figures 9 and 16",
            "one optimisation after the other",
            ("ufo-figure16",),
            "CoPriv's bars: not our code",
        ),
        Item(
            "figure 13",
            "residuals, aligned apart or in the accumulator",
            ("ufo-figure13",),
            "ResNet-18",
        ),
        Item(
            "figures 14 and 15",
            "accuracy against bytes; ResNet-18 on Tiny-ImageNet and ImageNet",
            ("ufo-figure14", "ufo-minionn", "ufo-figure15"),
            "ResNet-32 and ResNet-18 trained with few bits: their images are not here",
        ),
        Item("figure 18", "bits of weights, layer by layer", ("ufo-figure18",), "bars without numbers in the text"),
        Item("table IV", "bytes of convolutions", ("ufo-table4",), "CoPriv's column: not our code"),
        Item("table V", "ResNet-20 on CIFAR-10, trained with few bits", ("ufo-table5",), OTHERS),
        Item("table VI", "ResNet-32 on CIFAR-100", ("ufo-table6",), "not trained with few bits, but rounded"),
        Item("no table", "what few bits are worth under the products of suite `auto`", ("ufo-auto",)),
    ),
    "comet": (
        Item(
            "table 1",
            "unified against original models",
            ("comet-table1",),
            f"{PLAIN_RELU}; {ONE_FUNCTION}",
        ),
        Item("table 2", "accuracy by Newton iterations", ("comet-table2",), ROBERTA),
        Item("table 3", "CrypTen's start and Taylor series", ("comet-table3",), "times of whole models; RoBERTa"),
        Item("table 4", "the start by tables, as in Iron", ("comet-table4",), "times of whole models; RoBERTa"),
        Item("table 5", "trained slopes and smoothnesses", ("comet-table5",), f"{PLAIN_RELU}; {ONE_FUNCTION}"),
        Item("table 6", "with and without flooding", ("comet-table6",)),
        Item("table 7", "accuracy beside PUMA and Bumblebee", ("comet-table7",)),
        Item(
            "table 8", "time of GELU beside Bumblebee's", ("comet-table8",), "Bumblebee: a table of ours in its place"
        ),
        Item("table 9", "accuracy beside MPCFormer", ("comet-table9",), "MPCFormer's time of distillation"),
        Item("figures 1 to 3", "how it works", (), ILLUSTRATION),
        Item(
            "figures 4 to 6",
            "sizes of activations; how near exponents of shares must be",
            (),
            "curves without numbers; ranges are calibrated here, and no start needs near exponents",
        ),
    ),
    "gala": (
        Item(
            "tables VI and VIII, section IV",
            "single products and convolutions",
            ("gala-matvec", "gala-conv"),
            "both tables are not in the excerpt that we have; CrypTFlow2's and DELPHI's columns: not our code",
        ),
        Item("table IX", "rotations of whole networks", ("gala-operations",)),
        Item(
            "tables X and XI, figure 9",
            "time of linear layers",
            ("gala-networks",),
            "SecureML, MiniONN, DELPHI and CrypTFlow2; the links of the paper",
        ),
        Item(
            "table XII", "what part of the time linear layers take", ("gala-percentages",), "DELPHI's and CrypTFlow2's"
        ),
        Item(
            "table XIII",
            "fixed against floating point",
            ("gala-accuracy",),
            "VGG and ResNet-18 to 152: there are no weights of them for CIFAR-10 here, so that others stand in",
        ),
    ),
    "falcon": (
        Item("table 1", "what related systems hide", (), "no numbers"),
        Item("table 2", "convolutions and fully connected layers", ("falcon-table2",)),
        Item("table 3", "ReLU and max pooling in garbled circuits", ("falcon-table3",)),
        Item("table 4", "label and probability", ("falcon-table4",)),
        Item("table 5", "whole networks", ("falcon-table5",), "MiniONN's and GAZELLE's rows: theirs"),
        Item("table 6", "accuracy", ("falcon-table6",), "MiniONN's row: theirs"),
        Item("figures 1 to 5", "how it works", (), ILLUSTRATION),
        Item("figure 6", "accuracy, the numbers of table 6", ("falcon-table6",)),
    ),
    "lola": (
        Item(
            "table 1, and deep features",
            "latency and accuracy on MNIST; a linear classifier",
            ("lola-table1",),
            "AlexNet's features of CalTech-101: neither is here; features of ResNet-20 on CIFAR-10 stand in",
        ),
        Item(
            "table 2",
            "LoLa beside CryptoNets and others",
            (),
            "other systems' numbers; CryptoNets' packing, with batches, is in `lola-table1 --full`",
        ),
        Item("table 3", "LoLa, LoLa-Dense and LoLa-Small", ("lola-table3",)),
        Item("table 4", "MNIST and CIFAR-10", ("lola-table4",)),
        Item("figures 1 to 16", "how it works", (), ILLUSTRATION),
    ),
}
"""By page of docs/papers."""
WHOLLY_STORED = frozenset(
    {*(f"comet-table{number}" for number in (1, 2, 5, 6, 7, 9)), "ufo-figure15"},
)
"""Tables whose quick form has no row but stored ones."""
FULL = frozenset(
    (
        *(f"ufo-{name}" for name in ("figure13", "figure16", "figure17", "table5", "table6", "auto", "minionn")),
        *("comet-table3", "comet-table4", "falcon-table3", "falcon-table4", "gala-matvec"),
    )
)
"""Tables that pages have in full, since the quick form leaves out shapes, networks or images of the paper."""


def tables(paper: str) -> list[str]:
    """Names of the tables of a paper's page, each once, in the order of its items."""
    return list(dict.fromkeys(name for item in PAPERS[paper] for name in item.tables))
