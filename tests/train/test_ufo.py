"""Training for suite ufo: the Winograd domain, grids, widths, and that what is exported is what was trained."""

import itertools

import numpy as np
import pytest
from tacit_lab.train.ufo import directory, emulate

torch = pytest.importorskip("torch")

from tacit_lab.train.ufo import (  # noqa: E402
    command,
    cost,
    export,
    grid,
    integers,
    plan,
    sensitivity,
    start,
    teacher,
    training,
    widths,
    winograd,
)
from tacit_lab.train.ufo.data import Images, moved  # noqa: E402
from tacit_lab.train.ufo.network import Network, assign  # noqa: E402

IMAGES = 48


@pytest.fixture(scope="module")
def images():
    random = torch.Generator().manual_seed(1)
    pixels = torch.randint(0, 256, (IMAGES, 3, 32, 32), generator=random, dtype=torch.uint8)
    return Images(pixels, torch.randint(0, 10, (IMAGES,), generator=random))


@pytest.fixture(scope="module")
def float_network():
    return folded((16, 16, 16, 32, 32, 64, 64))


def folded(channels: tuple[int, ...]) -> teacher.Folded:
    random = torch.Generator().manual_seed(2)
    convolutions, before = [], 3
    for after in channels:
        weight = torch.randn(after, before, 3, 3, generator=random) * (2 / (9 * before)) ** 0.5
        convolutions.append((weight, torch.zeros(after)))
        before = after
    return teacher.Folded(convolutions, (torch.randn(10, before, generator=random) / 8, torch.zeros(10)))


def given(float_: teacher.Folded) -> dict[str, torch.Tensor]:
    """The float network as a checkpoint of three blocks, one for each size."""
    names = ["conv1", *(f"layer{b + 1}.0.conv{c}" for b in range(3) for c in (1, 2))]
    found = {"linear.weight": float_.linear.weight, "linear.bias": float_.linear.bias}
    for name, weight in zip(names, float_.weights, strict=True):
        norm = name.replace("conv", "bn")
        found[f"{name}.weight"] = weight
        found[f"{norm}.weight"], found[f"{norm}.bias"] = torch.ones(len(weight)), torch.zeros(len(weight))
    return {name: value.detach().clone() for name, value in found.items()}


def run_of(float_: teacher.Folded, images: Images, folder, **settings) -> training.Run:
    torch.manual_seed(1)
    network = Network(blocks=1)
    grids = [
        integers.plain(4),
        *(integers.Grid(*integers.DENSE[3]) for _ in range(4)),
        integers.doubled(3),
        integers.plain(2),
    ]
    assign(network, grids)
    start.begin(network, given(float_), float_, images)
    folder.mkdir(exist_ok=True)
    run = training.Run(training.Settings(batch=16, **settings), network, [float_], images, images, folder)
    training.estimated(run)
    return run


def test_places_compute_the_convolution():
    random = torch.Generator().manual_seed(3)
    x = torch.randn(2, 5, 6, 8, generator=random)
    weight = torch.randn(4, 5, 3, 3, generator=random)
    u = winograd.transformed(weight, torch.tensor(winograd.G))
    ordinary = torch.nn.functional.conv2d(x, weight, padding=1)
    assert torch.allclose(winograd.convolve(x, u), ordinary, atol=1e-4)
    u = torch.randint(-4, 4, (4, 5, 4, 4), generator=random).float()
    by_tiles = winograd.outputs(torch.einsum("ocpq,nchwpq->nohwpq", u, winograd.transformed_tiles(x)))
    assert torch.allclose(winograd.convolve(x, u), by_tiles, atol=1e-3)


def test_grids_are_sums_of_importances():
    assert integers.plain(3).levels() == list(range(-4, 4))
    assert integers.doubled(3).levels() == [-2, -1, 0, 1, 6, 7, 8, 9]
    assert integers.Grid(*integers.DENSE[3]).levels() == [-5, -3, -2, -1, 0, 1, 2, 4]
    for bits, (importance, _) in integers.DENSE.items():
        assert sum(cost.trailing(value) for value in importance) == bits * (bits - 1) // 2
    values = torch.tensor([-9.0, -4.2, -2.4, 0.4, 3.2])
    assert grid.nearest(values, torch.tensor([-5.0, -3.0, 0.0, 2.0, 4.0])).tolist() == [-5, -5, -3, 0, 4]


def test_scales_round_channels_best_and_outliers_choose_other_grids():
    random = torch.Generator().manual_seed(4)
    weight = torch.distributions.StudentT(3.0).sample((8, 64)) * torch.logspace(-3, 3, 8)[:, None]
    levels = integers.plain(3).levels()
    scale = grid.fitted(weight, levels)
    error = grid.error_of(weight.double(), torch.tensor(levels, dtype=torch.float64), scale.double())
    for factor in (0.8, -1.0, 1.25):
        other = grid.error_of(weight.double(), torch.tensor(levels, dtype=torch.float64), factor * scale.double())
        assert (other >= error * (1 - 1e-9)).all()
    even = torch.rand(8, 64, generator=random) - 0.5
    assert grid.chosen(even, 3) == integers.plain(3)
    spiked = torch.randn(8, 256, generator=random)
    spiked[:, 0] = 12.0
    best = min(grid.perturbation(spiked, g) for g in [integers.plain(3), *integers.reweighted(3)])
    assert grid.perturbation(spiked, grid.chosen(spiked, 3)) == best


def test_gradients_pass_the_rounding_within_the_levels():
    latent = torch.tensor([-9.0, -1.2, 0.4, 7.0], requires_grad=True)
    rounded = grid.Rounded.apply(latent, torch.tensor([-2.0, -1.0, 0.0, 1.0]))
    rounded.sum().backward()
    assert rounded.tolist() == [-2, -1, 0, 1]
    assert latent.grad.tolist() == [0, 1, 1, 0]


def test_the_integer_program_is_the_best_of_all():
    random = np.random.default_rng(5)
    omega = np.sort(random.random((4, 3)))[:, ::-1].tolist()
    price = np.sort(random.random((4, 3))).tolist()
    for bound in (1.5, 2.0, 2.5):
        every = itertools.product(range(3), repeat=4)
        allowed = [c for c in every if sum(price[i][c[i]] for i in range(4)) <= bound]
        best = min(sum(omega[i][c[i]] for i in range(4)) for c in allowed)
        found = widths.assigned(omega, price, bound)
        assert sum(price[i][found[i]] for i in range(4)) <= bound
        assert sum(omega[i][found[i]] for i in range(4)) == pytest.approx(best)


def test_products_cost_what_the_formula_says():
    products = cost.products()
    assert len(products) == 19
    two = products[2]
    assert (two.places, two.rows, two.inner, two.columns) == (16, 16, 16, 256)
    assert two.accumulator(integers.plain(2)) == 1 + 14  # 16 channels of at most 256 times 2: 2^13, and beyond it
    assert two.bytes(integers.plain(2)) == 16 * 16 * 16 * 256 * (15 + 14) // 8


def test_traces_are_those_of_the_hessian(images):
    float_ = folded((4, 4, 4))
    few = images.first(4)
    found = sensitivity.traces(float_, few, 400, 1)
    x = few.integers(few.pixels) * sensitivity.input_scale()
    loss = torch.nn.functional.cross_entropy(float_(x), few.labels)
    weight = float_.weights[2]
    (first,) = torch.autograd.grad(loss, weight, create_graph=True)
    entries = first.flatten()
    exact = [
        torch.autograd.grad(entry, weight, retain_graph=True)[0].flatten()[i].item() for i, entry in enumerate(entries)
    ]
    assert found[2] == pytest.approx(np.mean(exact), rel=0.3, abs=2e-3)


def test_images_move_by_at_most_four_pixels():
    pixels = torch.zeros(64, 1, 32, 32, dtype=torch.uint8)
    pixels[:, 0, 16, 16] = 200
    places = moved(pixels, torch.Generator().manual_seed(1)).nonzero()
    assert len(places) == 64
    assert places[:, 2].min() >= 12 and places[:, 2].max() <= 20


def test_the_directory_computes_what_was_trained(float_network, images, tmp_path):
    run = run_of(float_network, images, tmp_path / "run", epochs=1)
    training.train(run)
    x = images.integers(images.pixels)
    export.write(run.network, x.numpy(), tmp_path / "out")
    model = directory.read(tmp_path / "out")
    with torch.no_grad():
        run.network.eval()
        wanted = run.network(x).numpy()
    logits = emulate.logits(model, x.numpy())
    assert (logits.argmax(1) == wanted.argmax(1)).mean() > 0.95
    assert np.median(np.abs(logits - wanted)) < 0.02 * np.abs(wanted).max()
    for name, part in run.network.convolutions().items():
        weight = model.arrays[f"{written(name)}_weight"]
        assert set(np.unique(weight)) <= set(part.grid.levels())


def written(name: str) -> str:
    return name if name == "stem" else "block{1}_{2}".format(*name.split("."))


def test_a_run_that_was_stopped_goes_on(float_network, images, tmp_path):
    whole = run_of(float_network, images, tmp_path / "whole", epochs=2, bfloat16=False)
    training.train(whole)
    first = run_of(float_network, images, tmp_path / "parts", epochs=2, bfloat16=False)
    torch.manual_seed(7)
    training.epoch(first)  # and then it is stopped
    first.epoch = 1
    first.keep()
    second = run_of(float_network, images, tmp_path / "parts", epochs=2, bfloat16=False)
    second.resume()
    training.train(second)
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, second.network.state_dict()[name]), name


def test_another_plan_takes_the_weights_over(float_network, images, tmp_path):
    run = run_of(float_network, images, tmp_path / "run", epochs=1)
    run.keep()
    network = Network(blocks=1)
    assign(network, [integers.plain(6)] * 7)
    start.carry(network, tmp_path / "run")
    for before, after in zip(run.network.convolutions().values(), network.convolutions().values(), strict=True):
        assert grid.perturbation(after.latent(), integers.plain(6)) < grid.perturbation(after.latent(), before.grid)


def test_plans_keep_the_bound(float_network, monkeypatch):
    options = [[grid.chosen(weight.detach(), bits) for bits in plan.CHOICES] for weight in float_network.weights]
    weights = [weight.detach() for weight in float_network.weights]
    products = cost.products(1)
    monkeypatch.setattr(cost, "products", lambda: products)
    for average in (2.5, 3.0, 4.0):
        found = plan.solved(options, weights, [1.0] * 7, average)
        assert found["product_bytes"] <= found["bound"]
        assert [layer["bits"] for layer in found["layers"]] == [g.bits for g in plan.grids(found)]


def test_options_have_defaults():
    options = command.parsed(["--out", "x", "--export"])
    assert options.resume and options.epochs == training.Settings().epochs
