"""Models of LightGBM as text, as `Booster.save_model("model.txt")` writes them.

The format is that of `GBDT::SaveModelToString` and `Tree::ToString`; decisions are those of
`Tree::NumericalDecision` and `Tree::CategoricalDecision` (include/LightGBM/tree.h, version 4).
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.data.links import Link
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.trees.cuts import Cuts, at_most, categories, first_above, first_not_below
from tacit.importers.trees.ensemble import Ensemble, Tree, coded, interleaved
from tacit.importers.trees.grower import Grower

MOST_RESULTS = 1 << 16
MOST_CATEGORIES = 1 << 20
CATEGORICAL, DEFAULT_LEFT = 1, 2
NONE, ZERO, NAN = range(3)
"""What is missing: nothing, zeros with NaN, or NaN."""
TINY = float(np.float32(1e-35))
"""Numbers of at most this magnitude are zeros (`kZeroThreshold`)."""
LINKS: Mapping[str, str | None] = {
    "regression": None,
    "regression_l1": None,
    "huber": None,
    "fair": None,
    "quantile": None,
    "mape": None,
    "lambdarank": None,
    "rank_xendcg": None,
    "custom": None,
    "poisson": "exp",
    "gamma": "exp",
    "tweedie": "exp",
    "binary": "sigmoid",
    "multiclassova": "sigmoid",
    "cross_entropy": "sigmoid",
    "cross_entropy_lambda": "softplus",
    "multiclass": "softmax",
}
"""The links of objectives."""


def is_lightgbm(head: bytes) -> bool:
    """Whether a file that begins so is meant as a model of LightGBM."""
    return head.lstrip().startswith((b"tree\n", b"tree\r\n"))


def of_lightgbm(text: str, name: str) -> Ensemble:
    """The ensemble in the text of a model.

    Raises `MisuseError` for what is no model of LightGBM, `UnsupportedError` for what does not run.
    """
    try:
        return converted(text, name)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise MisuseError(f"no model of LightGBM, or a damaged one ({type(error).__name__}: {error})") from error


def refuse(what: str, instead: str) -> NoReturn:
    """Raise `UnsupportedError`."""
    raise UnsupportedError(f"{what}; {instead}")


def sections(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The header and the trees, each with its first line and its entries."""
    body, ends, _ = text.replace("\r\n", "\n").partition("\nend of trees")
    if not ends:
        raise ValueError("it has no `end of trees`: the file is not whole")
    for part in body.split("\nTree="):
        first, *lines = part.strip().split("\n")
        pairs = (line.partition("=") for line in lines)
        # A line without `=` is a flag.
        yield first, {key.strip(): value.strip() for key, _, value in pairs}


def converted(text: str, name: str) -> Ensemble:
    """As `of_lightgbm`; what is damaged raises whatever it does."""
    (_, header), *grown = sections(text)
    results, features = int(header["num_tree_per_iteration"]), int(header["max_feature_idx"]) + 1
    if not 1 <= results <= MOST_RESULTS or not grown or len(grown) % results:
        raise ValueError(f"{len(grown)} trees for {results} results")
    trees = [tree(entries) for _, entries in grown]
    link = link_of(header.get("objective", "custom"))
    columns = header.get("feature_names", "").split()
    columns = columns if len(columns) == features else []
    categories = listed(text, header.get("feature_infos", "").split(), features)
    return Ensemble(
        name=name,
        features=features,
        base=(0.0,) * results,
        trees=interleaved([trees[result::results] for result in range(results)]),
        divisor=len(grown) / results if "average_output" in header else 1.0,
        columns=tuple(columns),
        notes=(
            *(() if link is None else (f"results are scores: {link.words}",)),
            *coded(categories, columns),
        ),
        link=link,
        categories=categories,
        unknown_is_missing=True,
    )


def listed(text: str, kinds: list[str], features: int) -> tuple[tuple[str | float, ...], ...]:
    """The categories of each feature that a data frame had, where there is a list for each that is split by them."""
    _, _, line = text.rpartition("\npandas_categorical:")
    given = json.loads(line.split("\n")[0]) if line and line[:1] == "[" else []
    # The kind of numbers is a range in brackets, that of categories are codes.
    places = [at for at, kind in enumerate(kinds) if ":" in kind and not kind.startswith("[")]
    if len(kinds) != features or len(places) != len(given) or not given:
        return ()
    found: list[tuple[str | float, ...]] = [()] * features
    for at, values in zip(places, given, strict=True):
        found[at] = tuple(value if isinstance(value, str) else float(value) for value in values)
    return tuple(found)


def link_of(objective: str) -> Link | None:
    """What scores mean, of an objective with its settings, such as `binary sigmoid:1`."""
    kind, *settings = objective.split() or ["custom"]
    given = dict(setting.partition(":")[::2] for setting in settings)
    if kind not in LINKS:
        refuse(f"objective {kind}", f"use one of {', '.join(sorted(LINKS))}")
    if kind == "regression" and "sqrt" in given:
        return Link("signed-square")
    function = LINKS[kind]
    scale = float(given.get("sigmoid", 1.0)) if function == "sigmoid" else 1.0
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"a sigmoid of {scale}")
    return None if function is None else Link(function, scale)


def numbers(entries: Mapping[str, str], name: str, length: int, dtype: Any = np.int64) -> NDArray[Any]:
    """A list of numbers of a tree, as long as it has to be."""
    found = np.asarray(entries.get(name, "").split(), dtype=np.str_).astype(dtype)
    if len(found) != length:
        raise ValueError(f"`{name}` has {len(found)} numbers, not {length}")
    return found


def tree(entries: Mapping[str, str]) -> Tree:
    """One tree: its tests, then its leaves; child ~i is leaf i."""
    leaves = int(entries["num_leaves"])
    if int(entries.get("is_linear", 0)):
        refuse("linear models in leaves", "train it with linear_tree=false")
    if leaves < 1:
        raise ValueError(f"{leaves} leaves")
    values, tests = numbers(entries, "leaf_value", leaves, np.float64), leaves - 1
    grower = Grower(tests + leaves)
    grower.value[tests:, 0] = values
    if tests == 0:
        return grower.tree()
    features = numbers(entries, "split_feature", tests)
    thresholds = numbers(entries, "threshold", tests, np.float64)
    kinds = numbers(entries, "decision_type", tests)
    children = np.stack([numbers(entries, f"{side}_child", tests) for side in ("left", "right")], axis=1)
    if np.isnan(thresholds).any() or not ((-leaves <= children) & (children < tests)).all():
        raise ValueError("a threshold is no number, or a node has children that are none")
    places = np.where(children < 0, tests + ~children, children)
    sets = bitsets(entries) if int(entries.get("num_cat", 0)) else []
    for node in range(tests):
        kind = int(kinds[node])
        if kind & CATEGORICAL:
            cuts = category(sets[int(thresholds[node])])
        else:
            cuts = numeric(float(thresholds[node]), bool(kind & DEFAULT_LEFT), (kind >> 2) & 3)
        grower.test(node, int(features[node]), cuts, places[node].tolist())
    return grower.tree()


def bitsets(entries: Mapping[str, str]) -> list[list[int]]:
    """The categories that go left, of each split by categories."""
    count = int(entries["num_cat"])
    ends = numbers(entries, "cat_boundaries", count + 1)
    words = np.asarray(entries.get("cat_threshold", "").split(), np.uint32)
    if ends[0] != 0 or ends[-1] != len(words) or (np.diff(ends) < 0).any() or len(words) * 32 > MOST_CATEGORIES:
        raise ValueError("sets of categories with other sizes than they say")
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    return [np.flatnonzero(bits[32 * start : 32 * end]).tolist() for start, end in itertools.pairwise(ends)]


def category(codes: list[int]) -> Cuts:
    """Categories in a set go left; negative ones, unknown ones and NaN go right. Fractions are cut off towards zero."""
    behind_minus_one = float(np.nextafter(np.float32(-1), np.float32(0)))
    return categories(codes, missing_left=False, inside_left=True, zero_from=behind_minus_one)


def numeric(threshold: float, default_left: bool, missing: int) -> Cuts:
    """Numbers that are at most the threshold go left. Numbers next to zero are zeros.

    Zeros, and NaN with them, go to the default side if they are missing. If nothing is missing NaN is a zero.
    """
    zero_left = default_left if missing == ZERO else threshold >= 0
    missing_left = default_left if missing == NAN else zero_left
    plain = at_most(threshold, missing_left)
    low, high = first_not_below(-TINY), first_above(TINY)
    assert high is not None
    # What is below the range of zeros, the zeros, and what is above.
    cuts = [cut for cut in plain.cuts if cut < low]
    before, behind = not cuts, all(cut > high for cut in plain.cuts)
    if before != zero_left:
        cuts.append(low)
    if behind != zero_left:
        cuts.append(high)
    cuts += [cut for cut in plain.cuts if cut > high]
    return Cuts(tuple(cuts), True, missing_left)
