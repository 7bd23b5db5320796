"""Short training on real pictures: the handwritten digits that come with scikit-learn.

Networks with random weights amplify whatever noise there is from layer to layer, and their results hardly differ from
one class to the next, so that they say little about networks that people use.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

STEPS, BATCH, RATE = 200, 16, 2e-3
HELD_OUT = 240
"""Pictures that are not trained on; they calibrate and are compared."""
AVERAGED = 256
"""Pictures over which batch norms take their statistics at the end."""
SEED = 0


def digits(side: int) -> tuple[Tensor, Tensor]:
    """Pictures (N, 3, side, side) between -1 and 1, and what they show, in random order."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(x))
    small = torch.tensor(x[order].reshape(-1, 1, 8, 8) / 8 - 1, dtype=torch.float32)
    large = functional.interpolate(small, size=(side, side), mode="bilinear")
    return large.expand(-1, 3, -1, -1), torch.tensor(y[order])


def learn(module: nn.Module, side: int, steps: int = STEPS) -> NDArray[np.float32]:
    """Train a classifier of ten classes for a few steps, and return pictures that it has not seen."""
    x, y = digits(side)
    seen, known = x[HELD_OUT:], y[HELD_OUT:]
    random = np.random.default_rng(SEED)
    with torch.enable_grad():
        module.train()
        optimiser = torch.optim.AdamW(module.parameters())
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
        for _ in range(steps):
            chosen = random.integers(0, len(seen), BATCH)
            loss = functional.cross_entropy(module(seen[chosen]), known[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    average(module, seen[:AVERAGED])
    return np.ascontiguousarray(x[:HELD_OUT].numpy())


def average(module: nn.Module, x: Tensor) -> None:
    """Let batch norms take their statistics over some inputs."""
    module.eval()
    norms = [part for part in module.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    if norms:
        for part in x.split(BATCH):
            module(part)
    module.eval()


def accuracy(module: nn.Module, side: int) -> float:
    """The share of unseen pictures that are recognised."""
    x, y = (part[:HELD_OUT] for part in digits(side))
    return float((module(x).argmax(1) == y).float().mean())
