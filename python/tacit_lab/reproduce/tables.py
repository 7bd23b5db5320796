"""`tacit reproduce TABLE`: what a paper prints beside what this code does.

Every row has the paper's number and ours, in the same unit. What is measured besides, and has no
number in the paper's text, is in `measured`.
"""

from pathlib import Path
from time import perf_counter
from typing import Any

from tacit.demo.texts import INSTALL, PACKAGE
from tacit.errors import MisuseError

from tacit_lab.comet.accuracy import SEED
from tacit_lab.reproduce.comet import comet_table1, comet_table2, comet_table5, comet_table6, comet_table7, comet_table9
from tacit_lab.reproduce.comet_cost import comet_table3, comet_table4, comet_table8
from tacit_lab.reproduce.falcon import table_3, table_4, table_5, table_6
from tacit_lab.reproduce.falcon_layers import falcon_table2
from tacit_lab.reproduce.forests import SEED as FOREST_SEED
from tacit_lab.reproduce.gala import (
    gala_accuracy,
    gala_conv,
    gala_matvec,
    gala_networks,
    gala_operations,
    gala_percentages,
)
from tacit_lab.reproduce.harness import figures
from tacit_lab.reproduce.harness.conditions import conditions
from tacit_lab.reproduce.harness.needs import DataFile, LocalFile, Package, Stored
from tacit_lab.reproduce.heorg import STORED as STORED_HEORG
from tacit_lab.reproduce.heorg import bert as heorg_bert
from tacit_lab.reproduce.heorg import face as heorg_face
from tacit_lab.reproduce.heorg import mnist as heorg_mnist
from tacit_lab.reproduce.lola import table_1 as lola_table_1
from tacit_lab.reproduce.lola import table_3 as lola_table_3
from tacit_lab.reproduce.lola import table_4 as lola_table_4
from tacit_lab.reproduce.mlperf_tiny import table as mlperf_tiny
from tacit_lab.reproduce.paper import Minutes, Table
from tacit_lab.reproduce.peers import networks, operators
from tacit_lab.reproduce.trees import tables as tree_tables
from tacit_lab.reproduce.ufo import figure_13, figure_16, figure_17, figure_18
from tacit_lab.reproduce.ufo import table_4 as ufo_table_4
from tacit_lab.reproduce.ufo import table_5 as ufo_table_5
from tacit_lab.reproduce.ufo_minionn import minionn
from tacit_lab.reproduce.ufo_networks import RESNET18, auto_bits, figure_14, figure_15
from tacit_lab.reproduce.ufo_networks import table_6 as ufo_table_6

MNIST, CIFAR, CALIBRATION, GLUE = (
    DataFile(name) for name in ("mnist/mnist.npz", "cifar10/cifar10_test.npz", "cifar10/cifar10_train_50k.npz", "glue")
)
CRYPTONETS, MINIONN, RESNET8, RESNET20, RESNET32, SQUEEZENET = (
    DataFile(f"models/{name}.onnx")
    for name in (
        "cryptonets_mnist",
        "delphi_minionn_cifar10_relu",
        "mlperf_tiny_resnet8_cifar10",
        "resnet20_cifar10",
        "resnet32_cifar10",
        "squeezenet_v1.0_deepcompressed",
    )
)
HUNDRED, RESNET32_HUNDRED = DataFile("cifar100/cifar100_test2k.npz"), DataFile("models/delphi_resnet32_cifar100.onnx")
PHOTOGRAPHS = DataFile("imagenet/free_images")
TOKENIZERS = Package("tokenizers", "pip install 'tacit[text]'")
MINILM = (Package(PACKAGE, INSTALL), TOKENIZERS)
STORED_GLUE, STORED_LOLA, STORED_TRADEOFF = (
    Stored(f"bench/results/papers/{name}.json") for name in ("comet-glue", "lola-cifar10", "ufo-tradeoff")
)
FINETUNED = (
    LocalFile("build/glue/*-unified", "make train-glue TASK=mrpc writes one"),
    TOKENIZERS,
    GLUE,
)


def of_glue(number: int, what: str, rows: Any, minutes: float, seed: int | None = None) -> Table:
    """A table of Comet's accuracies: from stored results, or of all models that were finetuned here.

    The minutes of the latter are estimates for three models.
    """
    return Table(f"Comet, table {number}", what, rows, Minutes(0.01, minutes), (STORED_GLUE,), FINETUNED, seed)


TABLES = {
    "comet-table1": of_glue(1, "unified against original models on GLUE", comet_table1, 10),
    "comet-table2": of_glue(2, "accuracy by Newton iterations", comet_table2, 30, SEED),
    "comet-table3": Table(
        "Comet, table 3", "communication of CrypTen's and Taylor's starts", comet_table3, Minutes(0.25, 1.5)
    ),
    "comet-table4": Table("Comet, table 4", "communication of a start by table", comet_table4, Minutes(0.1, 0.5)),
    "comet-table5": of_glue(5, "unified models with trained slopes and smoothnesses", comet_table5, 10),
    "comet-table6": of_glue(6, "the published start with and without flooding", comet_table6, 20, SEED),
    "comet-table7": of_glue(7, "accuracy beside PUMA and Bumblebee", comet_table7, 10),
    "comet-table8": Table(
        "Comet, table 8", "GELU by tables beside the smooth maximum", comet_table8, Minutes(0.02, 0.1)
    ),
    "comet-table9": of_glue(9, "accuracy beside MPCFormer", comet_table9, 10),
    "gala-operations": Table("GALA, table IX", "rotations of whole networks", gala_operations, Minutes(0.01, 0.01)),
    "gala-matvec": Table(
        "GALA, section IV", "matrix-vector products, operations and time", gala_matvec, Minutes(0.01, 0.02)
    ),
    "gala-conv": Table("GALA, section IV", "convolutions, operations and time", gala_conv, Minutes(0.2, 1.5)),
    "gala-accuracy": Table(
        "GALA, table XIII",
        "fixed against floating point on CIFAR-10",
        gala_accuracy,
        Minutes(0.2, 2.5),
        (CIFAR, CALIBRATION, RESNET20, RESNET32, MINIONN),
    ),
    "gala-networks": Table(
        "GALA, tables X and XI, figure 9",
        "time of networks, linear layers",
        gala_networks,
        Minutes(0.02, 0.02),
        figure=figures.accumulated,
    ),
    "gala-percentages": Table(
        "GALA, table XII", "what part of the time linear layers take", gala_percentages, Minutes(0.1, 0.1)
    ),
    "falcon-table2": Table(
        "FALCON, table 2", "convolutions and fully connected layers", falcon_table2, Minutes(0.1, 0.3)
    ),
    "falcon-table3": Table("FALCON, table 3", "ReLU and max pooling in garbled circuits", table_3, Minutes(0.05, 0.15)),
    "falcon-table4": Table("FALCON, table 4", "label and probability of the top class", table_4, Minutes(0.05, 0.1)),
    "falcon-table5": Table(
        "FALCON, table 5",
        "whole networks for MNIST and CIFAR-10",
        table_5,
        Minutes(0.1, 0.1),
        (MNIST, CIFAR, CALIBRATION, MINIONN),
    ),
    "falcon-table6": Table(
        "FALCON, table 6",
        "accuracy on MNIST and CIFAR-10",
        table_6,
        Minutes(0.1, 2),
        (MNIST, CIFAR, CALIBRATION, MINIONN),
    ),
    "heorg-mnist": Table(
        "HomomorphicEncryption.org, ml-inference",
        "MNIST beside the reference submission",
        heorg_mnist,
        Minutes(0.5, 1),
        (MNIST,),
    ),
    "heorg-bert": Table(
        "HomomorphicEncryption.org, BERT",
        "BERT-base beside the reference submission; measured with --full",
        heorg_bert,
        Minutes(0.01, 6),
        (Stored(str(STORED_HEORG["heorg-bert"])),),
        (),
    ),
    "heorg-face": Table(
        "HomomorphicEncryption.org, face verification",
        "a pair of faces beside the reference submission; measured with --full",
        heorg_face,
        Minutes(0.01, 2),
        (Stored(str(STORED_HEORG["heorg-face"])),),
        (),
    ),
    "lola-table1": Table(
        "LoLa, table 1",
        "latency and accuracy on MNIST; with --full, batches",
        lola_table_1,
        Minutes(0.2, 0.7),
        (MNIST, CRYPTONETS, CIFAR, CALIBRATION, RESNET20),
    ),
    "lola-table3": Table(
        "LoLa, table 3",
        "LoLa, LoLa-Dense and LoLa-Small on MNIST",
        lola_table_3,
        Minutes(0.3, 0.5),
        (MNIST, CRYPTONETS),
    ),
    "lola-table4": Table(
        "LoLa, table 4",
        "MNIST and CIFAR-10; the latter measured with --full",
        lola_table_4,
        Minutes(0.1, 5),
        (MNIST, CRYPTONETS, STORED_LOLA),
        (MNIST, CRYPTONETS, CIFAR, CALIBRATION),
    ),
    "mlperf-tiny": Table(
        "MLPerf Tiny, closed division",
        "four networks for small devices, run privately",
        mlperf_tiny,
        Minutes(0.3, 1),
        (CIFAR, CALIBRATION, RESNET8),
    ),
    "trees": Table(
        "weirwood and Kangaroo", "decision trees of their sizes", tree_tables, Minutes(0.3, 3), seed=FOREST_SEED
    ),
    "ufo-table4": Table(
        "UFO, table IV",
        "convolutions of few bits; SiRNN's way and HE beside them",
        ufo_table_4,
        Minutes(0.2, 0.3),
    ),
    "ufo-table5": Table(
        "UFO, table V", "ResNet-20 on CIFAR-10, trained with few bits", ufo_table_5, Minutes(0.15, 3), (CIFAR,)
    ),
    "ufo-table6": Table(
        "UFO, table VI",
        "ResNet-32 on CIFAR-100, rounded to few bits",
        ufo_table_6,
        Minutes(0.5, 3),
        (HUNDRED, RESNET32_HUNDRED),
    ),
    "ufo-auto": Table(
        "UFO, section VI-E",
        "what few bits are worth under suite auto",
        auto_bits,
        Minutes(0.5, 2),
        (CIFAR, CALIBRATION, RESNET20, RESNET32),
    ),
    "ufo-figure13": Table(
        "UFO, figure 13",
        "residuals, aligned apart or in the accumulator",
        figure_13,
        Minutes(0.02, 0.05),
        figure=figures.residuals,
    ),
    "ufo-figure14": Table(
        "UFO, figure 14",
        "accuracy against bytes of three ways",
        figure_14,
        Minutes(0.5, 15),
        (CIFAR, CALIBRATION, RESNET20, STORED_TRADEOFF),
        (CIFAR, CALIBRATION, HUNDRED, RESNET20, RESNET32, RESNET32_HUNDRED, STORED_TRADEOFF),
        figure=figures.tradeoffs,
    ),
    "ufo-minionn": Table(
        "UFO, figure 14: MiniONN",
        "MiniONN's network of CIFAR-10 at 4 bits, rounded and trained",
        minionn,
        Minutes(0.5, 6),
        (CIFAR, CALIBRATION, MINIONN),
    ),
    "ufo-figure15": Table(
        "UFO, figures 14 and 15",
        "bytes of ResNet-18 at the shapes of Tiny-ImageNet and ImageNet; found with --full",
        figure_15,
        Minutes(0.01, 4),
        (Stored(str(RESNET18)),),
        (),
    ),
    "ufo-figure16": Table(
        "UFO, figure 16",
        "one optimisation after the other",
        figure_16,
        Minutes(0.3, 1),
        (CALIBRATION, RESNET20),
        (CALIBRATION, RESNET20, RESNET32),
        figure=figures.optimisations,
    ),
    "ufo-figure17": Table(
        "UFO, figure 17",
        "bytes of every block",
        figure_17,
        Minutes(0.15, 0.3),
        (CALIBRATION, RESNET20),
        (CALIBRATION, RESNET32),
        figure=figures.blocks,
    ),
    "ufo-figure18": Table(
        "UFO, figure 18", "bits of weights, layer by layer", figure_18, Minutes(0.01, 0.01), figure=figures.widths
    ),
    "peers-operators": Table(
        "other systems, as measured on such a machine",
        "traffic of single operations",
        operators,
        Minutes(0.4, 0.8),
        figure=figures.peers,
    ),
    "peers-networks": Table(
        "other systems, as measured on such a machine",
        "traffic and time of networks",
        networks,
        Minutes(0.3, 1),
        (CALIBRATION, RESNET20, RESNET32),
        (CALIBRATION, RESNET20, RESNET32, SQUEEZENET, PHOTOGRAPHS, *MINILM),
        figure=figures.peers,
    ),
}


def known(name: str) -> Table:
    """A table by name. Raises `MisuseError` for a name that there is none of."""
    if name not in TABLES:
        raise MisuseError(f"there is no table `{name}`; these are: {', '.join(TABLES)}")
    return TABLES[name]


def reproduce(name: str, full: bool, data: Path) -> dict[str, Any]:
    """One table, and under what conditions it was made."""
    table = known(name)
    start = perf_counter()
    content = table.rows(full, data)
    seconds = round(perf_counter() - start, 3)
    stored = [need.origin() for need in table.wants(full) if isinstance(need, Stored)]
    return {**conditions(name, table, full, data), "stored": stored, "seconds": seconds, **content}


def drawable(name: str) -> None:
    """Raise `MisuseError` if a table has no figure."""
    if known(name).figure is None:
        drawn = ", ".join(other for other, table in TABLES.items() if table.figure is not None)
        raise MisuseError(f"table `{name}` has no figure; these have: {drawn}")


def draw(content: dict[str, Any], path: Path) -> None:
    """The figure of a table, with our numbers."""
    drawable(content["table"])
    figure = known(content["table"]).figure
    if figure is not None:
        figures.write(figure(content), path)
