"""A sentence encoder over a file of texts or pairs: how near the float embeddings, and how well scores are ranked."""

from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.corpus import Corpus
from tacit.data.text import Embeddings, Text, cosines, spearman
from tacit.errors import MisuseError
from tacit.measure.quality import verdict
from tacit.model import Model, Progress
from tacit.session.pair import Pair


def evaluate(
    mode: str, pair: Pair, corpus: Corpus, source: Path | None, progress: Progress | None = None
) -> dict[str, Any]:
    """Embeddings of all texts in a `mode` (plain, simulate, private), compared with those of the float `source`.

    Fields: `pairs` and `spearman` with the scores of a file of pairs; `cosine_mean` and `cosine_min`
    with the float embeddings, and `float_spearman`, where `source` is known.
    """
    text = reader(pair.model)
    tokens = text.tokens(corpus.texts)
    x = tokens.x
    began, content = monotonic(), dict[str, Any]()
    if mode == "plain":
        content, embeddings = {"model": str(source)}, plain(text, needed(source), tokens.ids)
    elif mode == "simulate":
        content, embeddings = simulated(pair.model, text, x, progress)
    else:
        run = pair.run(x, None, progress)
        content, embeddings = run.report, embedded(text, run.prediction.logits, x)
    seconds = content.get("seconds", monotonic() - began)
    content = content | {"mode": mode, "inputs": len(x), "seconds": seconds}
    content |= {"embeddings": embeddings.tolist(), **ranked(corpus, embeddings, "")}
    if source is None or mode == "plain":
        return content
    floats = plain(text, source, tokens.ids)
    near = cosines(embeddings, floats)
    compared = {"source": str(source), "cosine_mean": float(near.mean()), "cosine_min": float(near.min())}
    compared |= {"metric": "embedding", "score": compared["cosine_mean"], "verdict": verdict(float(near.mean()))}
    return {**content, **compared, **ranked(corpus, floats, "float_")}


def reader(model: Model) -> Text:
    """How the model reads text; raises `MisuseError` if it does not."""
    if model.text is None:
        raise MisuseError(f"{model.path} reads no text")
    return model.text


def needed(source: Path | None) -> Path:
    """The float model, without which nothing is plain."""
    if source is None:
        raise MisuseError("--mode plain needs the float source: --model DIR or M.onnx")
    return source


def plain(text: Text, source: Path, ids: NDArray[np.float32]) -> Embeddings:
    """Embeddings of the float model under onnxruntime for tokens above their mask."""
    from tacit.compiler.float_model import FloatModel

    return embedded(text, FloatModel(source, (), text.sequence)(ids).astype(np.float64), ids)


def simulated(
    model: Model, text: Text, x: NDArray[np.float32], progress: Progress | None
) -> tuple[dict[str, Any], Embeddings]:
    """Embeddings of the interpreter."""
    outputs = model.real(model.simulate(x, progress))
    return {"model": str(model.path)}, embedded(text, outputs, x)


def embedded(text: Text, outputs: NDArray[np.float64] | None, x: NDArray[np.float32]) -> Embeddings:
    """Embeddings, which must be revealed."""
    embeddings = None if outputs is None else text.embeddings(outputs, x)
    if embeddings is None:
        raise MisuseError("embeddings are compared: the model must give them, and --reveal must be output")
    return embeddings


def ranked(corpus: Corpus, embeddings: Embeddings, prefix: str) -> dict[str, Any]:
    """Rank correlation of the cosines of pairs with their scores."""
    if corpus.pairs is None:
        return {}
    similar = cosines(embeddings[corpus.pairs[:, 0]], embeddings[corpus.pairs[:, 1]])
    correlation = None if corpus.scores is None else spearman(similar, corpus.scores)
    return {"pairs": len(similar), f"{prefix}spearman": correlation}
