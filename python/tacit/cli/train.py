"""`tacit train`."""

import typer

from tacit.errors import MisuseError

train = typer.Typer(help="Finetune models. Needs PyTorch: tacit[train].", no_args_is_help=True)
AS_GIVEN = {"allow_extra_args": True, "ignore_unknown_options": True}


@train.command(
    "glue",
    context_settings=AS_GIVEN,
    add_help_option=False,
    epilog="Example: `tacit train glue --task mrpc --original --out build/glue/mrpc`",
)
def glue_command(context: typer.Context) -> None:
    """Finetune an encoder on a task of GLUE, with its own functions or the unified ones of suite comet; see --help."""
    try:
        from tacit.train.glue import main
    except ImportError as error:
        advice = "install tacit[train], or run make train-glue TASK=mrpc"
        raise MisuseError(f"training needs {error.name}; {advice}") from error
    main(context.args)


@train.command(
    "ufo",
    context_settings=AS_GIVEN,
    add_help_option=False,
    epilog="Example: `tacit train ufo --out build/ufo/resnet20 --epochs 16`",
)
def ufo_command(context: typer.Context) -> None:
    """Train a ResNet of CIFAR-10 with low-bit weights of the Winograd domain for suite ufo; see --help."""
    try:
        from tacit.train.ufo.command import main
    except ImportError as error:
        raise MisuseError(f"training needs {error.name}; install tacit[train], or run make train-ufo") from error
    main(context.args)
