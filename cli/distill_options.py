"""Which options of `likewise distill` go with which kind of student."""

from __future__ import annotations

import click
from click.core import ParameterSource

from likewise.errors import UsageError

# About networks and sequences, which a static student has none of.
_OF_LAYERS = (
    "layers",
    "length",
    "short_first",
    "batch_tokens",
    "accumulate",
    "mask_rate",
    "mask_unit",
    "segmenter",
    "precision",
    "compile",
    "save_every",
    "tensorboard",
)
_OF_STATIC = ("dimension", "texts")
_OF_PARALLEL = ("student", "rows_only", "columns", "batch_size", "hold", "dropout", "blend", "keep_worse")
# About hidden tokens and layers, which play no part where whole texts are compared.
_NOT_PARALLEL = (
    "layers",
    "length",
    "short_first",
    "batch_tokens",
    "accumulate",
    "mask_rate",
    "mask_unit",
    "compile",
)


def check_options(*, static: bool, parallel: bool) -> None:
    """Refuse options that the wanted kind of student does not have.

    Raises:
        UsageError: One is given, or two kinds at once.
    """
    if static and parallel:
        raise UsageError("expected one of --static and --parallel, found both")
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if static and name in _OF_LAYERS:
            raise UsageError(f"{parameter.opts[0]} is for students with layers, which --static has none of")
        if not static and name in _OF_STATIC:
            raise UsageError(f"{parameter.opts[0]} is for static students", remedy="add --static")
        if not (static or parallel) and name == "words":
            raise UsageError(
                f"{parameter.opts[0]} is for static and bilingual students",
                remedy="add --static or --parallel",
            )
        if not parallel and name in _OF_PARALLEL:
            raise UsageError(f"{parameter.opts[0]} is for parallel sentences", remedy="add --parallel")
        if parallel and name in _NOT_PARALLEL:
            raise UsageError(f"{parameter.opts[0]} means nothing for parallel sentences")
