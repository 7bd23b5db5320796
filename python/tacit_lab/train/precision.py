"""The width of products in a training run: bfloat16 where the processor multiplies it, else float32.

A processor without instructions for bfloat16 converts every product, which takes several times as long as products in
float32: an epoch of RTE took over 25 minutes where it takes four.
"""

import argparse

from tacit.measure.machine import facts

INSTRUCTIONS = frozenset(("avx512_bf16", "amx_bf16", "bf16"))
"""Names that Linux gives to such instructions of x86 and of Arm."""


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for products of bfloat16; False where the system does not say."""
    return not INSTRUCTIONS.isdisjoint(f"{facts('flags')} {facts('Features')}".split())


def add_option(parser: argparse.ArgumentParser) -> None:
    """Adds --bfloat16 and --no-bfloat16."""
    parser.add_argument(
        "--bfloat16",
        action=argparse.BooleanOptionalAction,
        default=multiplies_bfloat16(),
        help="Products in bfloat16 or in float32. Default: what this processor has instructions for.",
    )
