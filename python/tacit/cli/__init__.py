"""The `tacit` command. Results go to standard output, progress and errors to standard error."""

from tacit.cli.application import app, main

__all__ = ["app", "main"]
