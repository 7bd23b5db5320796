"""The modules of `signals`."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional


def layers(dimensions: int) -> tuple[type[nn.Module], type[nn.Module], type[nn.Module], type[nn.Module]]:
    """Convolution, transposed one, norm and pool of so many dimensions."""
    if dimensions == 2:
        return nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d, nn.MaxPool2d
    return nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d, nn.MaxPool3d


class UNet(nn.Module):
    """A U-Net of two levels, by transposed convolutions or by bilinear sampling."""

    def __init__(self, dimensions: int = 2, channels: int = 8, inputs: int = 3, transposed: bool = True) -> None:
        super().__init__()
        conv, spread, _, pool = layers(dimensions)
        self.transposed, self.pool = transposed, pool(2)
        self.first, self.second = (
            self.block(dimensions, inputs, channels),
            self.block(dimensions, channels, 2 * channels),
        )
        self.up = spread(2 * channels, channels, 2, 2) if transposed else conv(2 * channels, channels, 1)
        self.last = self.block(dimensions, 2 * channels, channels)
        self.result = conv(channels, 2, 1)

    @staticmethod
    def block(dimensions: int, inputs: int, outputs: int) -> nn.Module:
        """A convolution, a norm and a ReLU."""
        conv, _, norm, _ = layers(dimensions)
        return nn.Sequential(conv(inputs, outputs, 3, padding=1, bias=False), norm(outputs), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        """Scores per pixel."""
        whole = self.first(x)
        deep = self.second(self.pool(whole))
        if not self.transposed:
            deep = functional.interpolate(deep, scale_factor=2.0, mode="bilinear")
        result: Tensor = self.result(self.last(torch.cat([whole, self.up(deep)], 1)))
        return result


class M5(nn.Module):
    """Raw audio, as in Dai et al., 2017."""

    def __init__(self, channels: int = 32, classes: int = 35) -> None:
        super().__init__()
        pairs = [(1, channels, 80, 16), (channels, channels, 3, 1), (channels, 2 * channels, 3, 1)]
        parts = [[nn.Conv1d(a, b, k, s), nn.BatchNorm1d(b), nn.ReLU(), nn.MaxPool1d(4)] for a, b, k, s in pairs]
        self.features = nn.Sequential(*(part for block in parts for part in block))
        self.result = nn.Linear(2 * channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logarithms of probabilities."""
        return functional.log_softmax(self.result(self.features(x).mean(-1)), dim=1)


def keywords(channels: int = 64, classes: int = 12) -> nn.Module:
    """The depthwise separable network of Zhang et al., 2017."""
    parts: list[nn.Module] = [nn.Conv2d(1, channels, (10, 4), 2, (5, 1)), nn.BatchNorm2d(channels), nn.ReLU()]
    for _ in range(4):
        parts += [nn.Conv2d(channels, channels, 3, padding=1, groups=channels), nn.BatchNorm2d(channels), nn.ReLU()]
        parts += [nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Causal(nn.Module):
    """A residual block of a temporal convolutional network."""

    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        self.cut = 2 * dilation
        self.first = nn.Conv1d(inputs, outputs, 3, padding=self.cut, dilation=dilation)
        self.second = nn.Conv1d(outputs, outputs, 3, padding=self.cut, dilation=dilation)
        self.beside = nn.Conv1d(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The block."""
        y = functional.relu(self.first(x)[:, :, : -self.cut])
        return functional.relu(functional.relu(self.second(y)[:, :, : -self.cut]) + self.beside(x))


class Tcn(nn.Module):
    """A classifier of series by dilated convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Causal(2, 16, 1), Causal(16, 16, 2), Causal(16, 16, 4))
        self.result = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Scores at the last step."""
        result: Tensor = self.result(self.blocks(x)[:, :, -1])
        return result


class WaveNet(nn.Module):
    """Gated dilated convolutions with skip connections."""

    def __init__(self, channels: int = 16, depth: int = 5) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, channels, 1)
        self.gates = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 2, dilation=2**k) for k in range(depth))
        self.rest = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in range(depth))
        self.skip = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in range(depth))
        self.result = nn.Sequential(nn.ReLU(), nn.Conv1d(channels, channels, 1), nn.ReLU(), nn.Conv1d(channels, 8, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Scores of each step."""
        x, total = self.first(x), torch.zeros(())
        for step, (gate, rest, skip) in enumerate(zip(self.gates, self.rest, self.skip, strict=True)):
            value, factor = gate(functional.pad(x, (2**step, 0))).chunk(2, 1)
            gated = torch.tanh(value) * torch.sigmoid(factor)
            total, x = total + skip(gated), x + rest(gated)
        result: Tensor = self.result(total)
        return result


class Attention(nn.Module):
    """A block of a transformer over features or steps."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.before, self.after = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """The block."""
        batch, tokens, width = x.shape
        split = self.project(self.before(x)).reshape(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        result: Tensor = x + self.dense(self.after(x))
        return result


class Series(nn.Module):
    """A forecast by two blocks of attention over steps."""

    def __init__(self, steps: int = 24, inputs: int = 4, width: int = 32) -> None:
        super().__init__()
        self.first, self.places = nn.Linear(inputs, width), nn.Parameter(torch.randn(1, steps, width) * 0.1)
        self.blocks, self.result = nn.Sequential(Attention(width), Attention(width)), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """One number."""
        result: Tensor = self.result(self.blocks(self.first(x) + self.places).mean(1))
        return result


class Features(nn.Module):
    """A transformer over the features of a table, each a token, with a token for the class."""

    def __init__(self, features: int = 12, width: int = 32) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.randn(features, width) * 0.3) for _ in range(2))
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.3)
        self.blocks, self.result = nn.Sequential(Attention(width), Attention(width)), nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes."""
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), x.unsqueeze(-1) * self.weight + self.bias], 1)
        result: Tensor = self.result(self.blocks(tokens)[:, 0])
        return result


def table() -> nn.Module:
    """A perceptron with norms."""
    first = [nn.BatchNorm1d(20), nn.Linear(20, 64), nn.BatchNorm1d(64), nn.LeakyReLU(), nn.Dropout()]
    return nn.Sequential(*first, nn.Linear(64, 32), nn.SELU(), nn.Linear(32, 3))


def espcn() -> nn.Module:
    """Super-resolution of Shi et al., 2016."""
    first = [nn.Conv2d(1, 32, 5, padding=2), nn.Tanh(), nn.Conv2d(32, 16, 3, padding=1), nn.Tanh()]
    return nn.Sequential(*first, nn.Conv2d(16, 9, 3, padding=1), nn.PixelShuffle(3))


def autoencoder() -> nn.Module:
    """Convolutions to 32 numbers, and back."""
    encoder = [nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(), nn.Flatten()]
    middle = [nn.Linear(784, 32), nn.Linear(32, 784), nn.ReLU(), nn.Unflatten(1, (16, 7, 7))]
    decoder = [nn.ConvTranspose2d(16, 8, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 3, 2, 1, 1), nn.Sigmoid()]
    return nn.Sequential(*encoder, *middle, *decoder)


class Face(nn.Module):
    """An embedding of length 1."""

    def __init__(self) -> None:
        super().__init__()
        pairs = [(3, 16), (16, 32)]
        parts = [[nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.PReLU(b)] for a, b in pairs]
        features = [part for block in parts for part in block]
        self.features = nn.Sequential(*features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 64))

    def forward(self, x: Tensor) -> Tensor:
        """The embedding."""
        return functional.normalize(self.features(x), dim=1)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "unet-transposed": UNet,
    "unet-bilinear": lambda: UNet(transposed=False),
    "unet-volume": lambda: UNet(3, 4, 1),
    "audio-m5": M5,
    "keyword-ds-cnn": keywords,
    "series-tcn": Tcn,
    "series-wavenet": WaveNet,
    "series-transformer": Series,
    "tabular-mlp": table,
    "tabular-transformer": Features,
    "super-resolution-espcn": espcn,
    "autoencoder": autoencoder,
    "face-embedding": Face,
}
