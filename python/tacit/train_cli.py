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
