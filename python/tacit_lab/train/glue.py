"""Finetune an encoder of the BERT family on a task of GLUE, with its own functions or with the unified ones of Comet.

    tacit train glue --task mrpc --original --out build/glue/mrpc
    tacit train glue --task mrpc --unified --model build/glue/mrpc --out build/glue/mrpc-unified

In the repository `tacit` is then `PYTHONPATH=python .venv-train/bin/python -m tacit`.

The unified model starts as near to the finetuned original as linear algebra gets it (`start`), and learns to give what
that gives: its logits, and the states of tokens after every layer. The weights of the best epoch on the dev file are
kept, as a directory of Hugging Face that `tacit compile` reads. A run that was stopped goes on with --resume and ends
as if it had not been.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tacit.demo.texts import minilm
from tacit.report import terminal
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from tacit_lab.glue import TASKS, Task
from tacit_lab.train import precision
from tacit_lab.train.batches import Batch, Examples, read, scores
from tacit_lab.train.bert import Classifier, Seen, load, save
from tacit_lab.train.functions import Smooth
from tacit_lab.train.ranges import excess, spans
from tacit_lab.train.start import approach

SMOOTH_RATE = 20.0
"""How much faster the numbers of unified functions learn than weights."""
WARM_UP = 0.06
LONGEST_GRADIENT = 1.0
MEASURED = 64


@dataclass
class Run:
    """What is trained, on what, and how far it is."""

    options: argparse.Namespace
    task: Task
    model: Classifier
    teacher: Classifier | None
    train: Examples
    dev: Examples
    epoch: int = 0
    best: float = float("-inf")
    history: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = self.options
        smooth = [number for part in self.model.smooth() for number in part.parameters() if number.requires_grad]
        known = {id(number) for number in smooth}
        self.model.embeddings["word_embeddings"].requires_grad_(False)
        weights = [p for p in self.model.parameters() if p.requires_grad and id(p) not in known]
        groups = [
            {"params": [p for p in weights if p.dim() > 1], "weight_decay": options.weight_decay},
            {"params": [p for p in weights if p.dim() <= 1], "weight_decay": 0.0},
            {"params": smooth, "weight_decay": 0.0, "lr": SMOOTH_RATE * options.learning_rate},
        ]
        self.optimiser = torch.optim.AdamW([g for g in groups if g["params"]], lr=options.learning_rate, fused=True)
        total = options.epochs * self.train.steps(options.batch)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, slope(total))

    @property
    def checkpoint(self) -> Path:
        """What `resume` reads."""
        folder: Path = self.options.out
        return folder / "checkpoint.pt"

    def resume(self) -> None:
        """Go on after the last whole epoch, if there was one."""
        if not self.checkpoint.is_file():
            return
        state = torch.load(self.checkpoint, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.epoch, self.best, self.history = state["epoch"], state["best"], json.loads(state["history"])

    def keep(self) -> None:
        """Write the checkpoint; a kill leaves the one before or this one."""
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "epoch": self.epoch,
            "best": self.best,
            "history": json.dumps(self.history),
        }
        part = self.checkpoint.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.checkpoint)


def slope(total: int) -> Callable[[int], float]:
    """The factor of the learning rate at a step: up to 1, then down to 0."""
    warm = max(1, round(WARM_UP * total))
    return lambda step: min((step + 1) / warm, max(0.0, (total - step) / max(1, total - warm)))


def loss_of(run: Run, batch: Batch) -> Tensor:
    """What one batch is wrong by."""
    logits, seen = run.model(batch.ids, batch.mask)
    logits = logits.float()
    if run.task.estimates:
        loss = functional.mse_loss(logits[:, 0], batch.wanted)
    else:
        loss = functional.cross_entropy(logits, batch.wanted)
    if run.teacher is not None:
        with torch.no_grad():
            expected, shown = run.teacher(batch.ids, batch.mask)
        loss = run.options.label_weight * loss + functional.mse_loss(logits, expected.float())
        loss = loss + run.options.state_weight * differing(seen, shown, batch.mask)
    return loss + run.options.range_weight * excess(run.model, seen, batch.mask, run.options.span)


def differing(seen: Seen, shown: Seen, mask: Tensor) -> Tensor:
    """How far the states of tokens are from the teacher's, as a share of these; the mean over layers."""
    kept = mask[:, :, None]
    layers = []
    for ours, wanted in zip(seen.states, shown.states, strict=True):
        off = ((ours.float() - wanted.float()).square() * kept).sum()
        layers.append(off / (wanted.float().square() * kept).sum())
    return torch.stack(layers).mean()


def epoch(run: Run) -> float:
    """Train on every input once; gives the mean loss."""
    options, total, steps = run.options, 0.0, run.train.steps(run.options.batch)
    torch.manual_seed(options.seed * 1000 + run.epoch)
    run.model.train()
    with terminal.progress(f"epoch {run.epoch + 1} of {options.epochs}") as advance:
        for done, batch in enumerate(run.train.shuffled(options.batch, options.seed * 1000 + run.epoch)):
            with torch.autocast("cpu", torch.bfloat16, enabled=options.bfloat16):
                loss = loss_of(run, batch)
            run.optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(run.model.parameters(), LONGEST_GRADIENT)
            run.optimiser.step()
            run.schedule.step()
            for part in run.model.smooth():
                part.bound()
            total += loss.item()
            advance(done + 1, steps)
    return total / steps


def outputs(model: Classifier, examples: Examples) -> NDArray[np.float64]:
    """Logits (N, classes) in float32, in the order of the file."""
    model.eval()
    found = np.zeros((len(examples.tokens), model.classifier.out_features))
    with torch.no_grad():
        for places, batch in examples.ordered(MEASURED):
            found[places] = model(batch.ids, batch.mask)[0].numpy()
    return found


def train(run: Run) -> None:
    """All epochs that are left; the best one on the dev file is what `out` holds."""
    options = run.options
    if not run.history:
        start(run)
    while run.epoch < options.epochs:
        began = time.monotonic()
        loss = epoch(run)
        found = scores(outputs(run.model, run.dev), run.dev)
        run.epoch += 1
        entry = {"epoch": run.epoch, "loss": loss, **found, "seconds": time.monotonic() - began}
        keep_best(run, entry, found)


def keep_best(run: Run, entry: dict[str, Any], found: dict[str, float]) -> None:
    """Note an epoch, and keep its weights if none were better."""
    run.history.append(entry)
    print(json.dumps({name: round(value, 4) for name, value in entry.items()}), flush=True)
    if found[run.task.measure] > run.best:
        run.best = found[run.task.measure]
        save(run.model, run.options.out, run.options.model)
        write(run.options.out / "result.json", result(run, found))
    run.keep()


def start(run: Run) -> None:
    """Bring a unified model near to its teacher."""
    if run.teacher is None:
        return
    began = time.monotonic()
    errors = approach(run.model, run.teacher, sample(run))
    found = scores(outputs(run.model, run.dev), run.dev)
    entry = {"epoch": 0, "state_error": max(errors), **found, "seconds": time.monotonic() - began}
    keep_best(run, entry, found)


def sample(run: Run) -> list[Batch]:
    """Batches of `--start` tokens together, or all."""
    chosen, tokens = [], 0.0
    for batch in run.train.shuffled(run.options.batch, run.options.seed):
        chosen.append(batch)
        tokens += batch.mask.sum().item()
        if tokens >= run.options.start:
            break
    return chosen


def result(run: Run, found: dict[str, float]) -> dict[str, Any]:
    """What is known of the weights that are kept."""
    given = {name: str(value) if isinstance(value, Path) else value for name, value in vars(run.options).items()}
    content: dict[str, Any] = {"task": run.options.task, "epoch": run.epoch, "dev": found, "options": given}
    content["functions"] = described(run.model.smooth())
    return {**content, "ranges": spans(run.model, run.dev), "history": run.history}


def described(parts: list[Smooth]) -> list[list[float]]:
    """Slope and smoothness of each unified function."""
    return [[part.slope.item(), part.smoothness.item()] for part in parts]


def write(path: Path, content: dict[str, Any]) -> None:
    """A file of JSON, as a whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    part.replace(path)


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tacit train glue", description="Finetune an encoder on a task of GLUE.")
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--model", type=Path, help="Directory of the encoder. Default: all-MiniLM-L6-v2.")
    parser.add_argument("--out", type=Path, required=True, help="Directory to write.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/glue"), help="Folder with TASK_train.tsv.")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--original", action="store_true", help="GELU and softmax.")
    kind.add_argument("--unified", action="store_true", help="Smooth maximum units and the softmax made of them.")
    kind.add_argument("--activation", action="store_true", help="Only the unified activation, and softmax.")
    kind.add_argument("--attention", action="store_true", help="GELU, and only the unified softmax.")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--sequence", type=int, help="Tokens of the longest input. Default: the task's.")
    parser.add_argument("--limit", type=int, help="Lines of the training file. Default: all.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="More only help where cores are idle.")
    precision.add_option(parser)
    parser.add_argument("--label-weight", type=float, default=0.2, help="Of the labels beside the original's outputs.")
    parser.add_argument("--state-weight", type=float, default=3.0, help="Of states of tokens beside outputs.")
    parser.add_argument(
        "--start", type=int, default=20000, help="Tokens that the unified model's start is solved from."
    )
    parser.add_argument("--range-weight", type=float, default=0.01, help="Of arguments outside --span.")
    parser.add_argument(
        "--span", type=float, default=16.0, help="Largest argument of a unified function, in smoothness."
    )
    parser.add_argument("--resume", action="store_true", help="Go on with what is in --out.")
    return parser.parse_args(words)


def prepare(options: argparse.Namespace) -> Run:
    """Models and files of a run."""
    task = TASKS[options.task]
    options.model = options.model or minilm()
    options.sequence = options.sequence or task.sequence
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    model, teacher = load(options.model, task.labels), None
    if not options.original:
        teacher = load(options.model, task.labels).eval().requires_grad_(False)
        model.unify(activation=not options.attention, attention=not options.activation)
        for layer in model.layers():
            layer.dropout = 0.0
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    parts = [options.data / f"{options.task}_{part}.tsv" for part in ("train", "dev")]
    train = read(parts[0], task, tokenizer, options.sequence, options.limit)
    return Run(options, task, model, teacher, train, read(parts[1], task, tokenizer, options.sequence))


def main(words: Sequence[str] | None = None) -> None:
    """Train as the command line says, or as these words do."""
    options = parsed(words)
    torch.set_num_threads(options.threads)
    run = prepare(options)
    if options.resume:
        run.resume()
    train(run)
    print(f"wrote {options.out}: {run.task.measure} {run.best:.4f} on {len(run.dev.tokens)} inputs")


if __name__ == "__main__":
    main()
