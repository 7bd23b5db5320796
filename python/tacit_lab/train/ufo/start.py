"""Where training starts: the float network, rounded."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from tacit.errors import MisuseError
from torch import Tensor, nn

from tacit_lab.train.ufo import teacher
from tacit_lab.train.ufo.data import Images, input_scale
from tacit_lab.train.ufo.integers import HIDDEN_BITS, RESIDUAL_BITS, largest
from tacit_lab.train.ufo.network import Convolution, Network

CALIBRATED = 256
RANGES = 50
"""Ranges of a tensor that are tried."""


def parameters(path: Path) -> dict[str, Tensor]:
    """The tensors of the checkpoint, by the names of its modules; else raises `MisuseError`."""
    if not path.is_file():
        raise MisuseError(f"{path} does not exist; --models names the folder with the float networks")
    with np.load(path, allow_pickle=False) as archive:
        return {name: torch.from_numpy(archive[name]) for name in archive.files}


def begin(network: Network, given: dict[str, Tensor], float_: teacher.Folded, images: Images) -> None:
    """Weights, batch norms and ranges of the float network; statistics of batch norm are left to `estimate`."""
    with torch.no_grad():
        x = images.integers(images.pixels[:CALIBRATED]) * input_scale()
        tensors = float_.tensors(x)
        units = [unit(y, RESIDUAL_BITS if index % 2 == 0 else HIDDEN_BITS) for index, y in enumerate(tensors)]
        take(network.stem, given, ("conv1", "bn1"), units[0])
        for index, block in enumerate(network.blocks):
            hidden, after, before = units[2 * index + 1], units[2 * index + 2], units[2 * index]
            prefix = f"layer{index // stage(network) + 1}.{index % stage(network)}"
            take(block.first, given, (f"{prefix}.conv1", f"{prefix}.bn1"), hidden)
            take(block.second, given, (f"{prefix}.conv2", f"{prefix}.bn2"), after)
            block.ratio.fill_(before / after)
        network.linear.weight.copy_(given["linear.weight"] * units[-1])
        network.linear.bias.copy_(given["linear.bias"])


def carry(network: Network, folder: Path) -> None:
    """The weights of the checkpoint of another run, in units of the levels that layers have here."""
    path = folder / "checkpoint.pt"
    if not path.is_file():
        raise MisuseError(f"{path} does not exist; --from names the directory of a run")
    network.load_state_dict(torch.load(path, weights_only=True)["network"])
    for part in network.convolutions().values():
        part.fit()


def stage(network: Network) -> int:
    """Blocks of one size."""
    return len(network.blocks) // 3


def take(part: Convolution, given: dict[str, Tensor], names: tuple[str, str], scale: float) -> None:
    """A convolution and its batch norm, the latter in units of what follows."""
    part.weight.copy_(given[f"{names[0]}.weight"])
    part.norm.weight.copy_(given[f"{names[1]}.weight"] / scale)
    part.norm.bias.copy_(given[f"{names[1]}.bias"] / scale)
    part.fit()


def unit(y: Tensor, bits: int) -> float:
    """What one unit of a tensor of so many bits is, for the least square error."""
    top, levels = float(y.max()), largest(bits)
    scales = [top * (index + 1) / RANGES / levels for index in range(RANGES)]
    errors = [((y / s).round().clamp(0, levels) * s - y).square().mean().item() for s in scales]
    return scales[int(np.argmin(errors))]


def estimate(network: Network, batches: Iterable[tuple[Tensor, Tensor]], dtype: torch.dtype) -> None:
    """Statistics of batch norm anew, as the mean of those of batches."""
    norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
    kept = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    network.train()
    with torch.no_grad():
        for x, _ in batches:
            network(x.to(dtype))
    for norm, momentum in zip(norms, kept, strict=True):
        norm.momentum = momentum
