"""Classifiers and segmentation of torchvision and timm."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit_lab.zoo.entry import BRIEFLY, RANDOM, Entry

SIDE, CLASSES = 64, 10
TORCHVISION = {
    "resnet18": {},
    "resnet50": {},
    "mobilenet_v2": {},
    "mobilenet_v3_small": {},
    "shufflenet_v2_x0_5": {},
    "densenet121": {},
    "efficientnet_b0": {},
    "squeezenet1_1": {},
    "mnasnet0_5": {},
    "regnet_y_400mf": {},
    "convnext_tiny": {},
    "swin_t": {},
    "googlenet": {"aux_logits": False, "init_weights": True},
}
"""Names of torchvision, and what they are made with."""
TIMM: dict[str, tuple[int, dict[str, Any]]] = {
    "vit_tiny_patch16_224": (224, {}),
    "deit_tiny_patch16_224": (SIDE, {"img_size": SIDE}),
    "swin_tiny_patch4_window7_224": (SIDE, {"img_size": SIDE, "window_size": 4}),
    "ghostnet_100": (SIDE, {}),
    "mobilevit_xxs": (128, {}),
    "mixer_s32_224": (SIDE, {"img_size": SIDE}),
    "poolformer_s12": (32, {}),
    "levit_128s": (224, {}),
    "efficientformer_l1": (224, {}),
    "coat_tiny": (SIDE, {"img_size": SIDE}),
    "repvgg_a0": (SIDE, {}),
    "hrnet_w18_small": (SIDE, {}),
    "res2net50_26w_4s": (SIDE, {}),
    "edgenext_xx_small": (SIDE, {}),
    "fastvit_t8": (SIDE, {}),
    "mobileone_s0": (SIDE, {}),
    "tinynet_e": (SIDE, {}),
}
"""Names of timm, the side of an image, and what they are made with."""
PLAIN = {
    "squeezenet1_1",
    "convnext_tiny",
    "swin_t",
    "deit_tiny_patch16_224",
    "swin_tiny_patch4_window7_224",
    "mixer_s32_224",
    "coat_tiny",
    "edgenext_xx_small",
}
"""Those without batch norms, which learn too little in a few steps and behave well with random weights."""
SEGMENTATION = ("lraspp_mobilenet_v3_large",)
NOTES = {
    "efficientnet_b0": "Two labels of 100 change with stochastic rounding; 12 bits do not fit.",
    "lraspp_mobilenet_v3_large": "It has random weights, which amplify noise from layer to layer.",
    "mobileone_s0": "Errors grow from layer to layer along its parallel branches even at 12 bits, also on inputs that "
    "calibrate, so that no range is too small; why is not known.",
    "poolformer_s12": "Its norms go over all elements of a tensor, too many for those of 9 or 10 bits, and its random "
    "weights amplify the noise of 8.",
}
"""What is to be known of rows that are further from the float model."""
PRIVATE = {"squeezenet1_1", "resnet18", "tinynet_e"}
"""Those that are small enough to be run each time."""


def learns(name: str, side: int) -> bool:
    """Whether a classifier is trained for a few steps."""
    return side == SIDE and name not in PLAIN


def make_classifier(build: Callable[[], Any], name: str, side: int) -> Callable[[Path], None]:
    """Write a classifier of pictures of `side` pixels, trained or not."""
    from tacit_lab.zoo.export import image, pictures

    return pictures(build, side) if learns(name, side) else image(build, (3, side, side))


def of_torchvision(name: str, options: dict[str, Any]) -> Entry:
    """A classifier of torchvision."""

    def make(path: Path) -> None:
        from torchvision import models

        make_classifier(lambda: getattr(models, name)(weights=None, num_classes=CLASSES, **options), name, SIDE)(path)

    weights = BRIEFLY if learns(name, SIDE) else RANDOM
    private, note = name in PRIVATE, NOTES.get(name, "")
    return Entry(
        f"torchvision-{name}", "vision", "torchvision", "BSD-3-Clause", make, weights, private=private, note=note
    )


def of_timm(name: str, side: int, options: dict[str, Any]) -> Entry:
    """A classifier of timm."""

    def make(path: Path) -> None:
        import timm

        make_classifier(lambda: timm.create_model(name, pretrained=False, num_classes=CLASSES, **options), name, side)(
            path
        )

    weights = BRIEFLY if learns(name, side) else RANDOM
    private, note = name in PRIVATE, NOTES.get(name, "")
    return Entry(f"timm-{name}", "vision", "timm", "Apache-2.0", make, weights, private=private, note=note)


def segmentation(name: str) -> Entry:
    """Segmentation of torchvision."""

    def make(path: Path) -> None:
        from torchvision.models import segmentation as models

        from tacit_lab.zoo.export import Named, image

        options = {"weights": None, "weights_backbone": None, "num_classes": CLASSES}
        image(lambda: Named(getattr(models, name)(**options), "out"), (3, SIDE, SIDE))(path)

    return Entry(f"torchvision-{name}", "segmentation", "torchvision", "BSD-3-Clause", make, note=NOTES.get(name, ""))


ENTRIES = (
    *(of_torchvision(name, options) for name, options in TORCHVISION.items()),
    *(of_timm(name, side, options) for name, (side, options) in TIMM.items()),
    *(segmentation(name) for name in SEGMENTATION),
)
