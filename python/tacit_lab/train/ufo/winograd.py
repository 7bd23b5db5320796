"""F(2x2, 3x3): `Y = A^T [U (.) (B^T d B)] A` on tiles of 4x4 places that step by two (UFO, Eq. 1).

As a map of the tile d it is a convolution with kernels of 4x4, a stride of two and four outputs per channel, one for
each pixel of Y. That is what trains: one call of a convolution instead of transforms of every tile.
"""

import torch
from torch import Tensor
from torch.nn import functional

B_T = ((1.0, 0.0, -1.0, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, -1.0, 1.0, 0.0), (0.0, 1.0, 0.0, -1.0))
A_T = ((1.0, 1.0, 1.0, 0.0), (0.0, 1.0, -1.0, -1.0))
G = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))


def transformed(weight: Tensor, g: Tensor) -> Tensor:
    """`G w G^T` of weights (out, in, 3, 3): (out, in, 4, 4)."""
    return g @ weight @ g.T


def spread() -> Tensor:
    """What row i of a tile adds to row r of the output through row p of the places: (r, i, p)."""
    a, b = torch.tensor(A_T), torch.tensor(B_T)
    return a[:, None, :] * b.T[None, :, :]


def kernels(u: Tensor) -> Tensor:
    """Weights of places (out, in, 4, 4) as those of a convolution (4 out, in, 4, 4)."""
    half = spread().to(u)
    found = torch.einsum("rip,sjq,ocpq->orscij", half, half, u)
    return found.reshape(4 * u.shape[0], u.shape[1], 4, 4)


def convolve(x: Tensor, u: Tensor) -> Tensor:
    """The product of images (N, in, H, W), H and W even, with zeros around them, and weights of places."""
    return functional.pixel_shuffle(functional.conv2d(x, kernels(u), stride=2, padding=1), 2)


def transformed_tiles(x: Tensor) -> Tensor:
    """`B^T d B` of every tile of images (N, C, H, W): (N, C, H/2, W/2, 4, 4)."""
    tiles = functional.pad(x, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2)
    b = torch.tensor(B_T).to(x)
    return b @ tiles @ b.T


def outputs(products: Tensor) -> Tensor:
    """`A^T [..] A` of sums at places (N, C, H/2, W/2, 4, 4): images (N, C, H, W)."""
    a = torch.tensor(A_T).to(products)
    y = a @ products @ a.T
    n, c, height, width = y.shape[:4]
    return y.permute(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * height, 2 * width)
