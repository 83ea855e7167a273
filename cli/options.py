"""Options that several commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from likewise.index.index import Index
    from likewise.index.records import Filter

    Command = TypeVar("Command", bound=Callable[..., object])

MODES = click.Choice(["hybrid", "dense", "lexical"])

# What several commands say of training, and of models, in the same words.
PRECISION: Callable[[Any], Any] = click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "bfloat16"]),
    default="auto",
    show_default=True,
    help="Arithmetic of the forward pass; auto measures which is faster.",
)
DEVICE: Callable[[Any], Any] = click.option(
    "--device", default="auto", show_default=True, metavar="NAME", help="cpu, cuda, mps, or auto."
)
AVERAGE: Callable[[Any], Any] = click.option(
    "--average",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Evaluate and keep a running mean of the weights that looks back on this share of the run, such as "
    "0.5; 0 keeps the weights themselves.",
)
LENGTH: Callable[[Any], Any] = click.option(
    "--length",
    type=click.IntRange(min=8),
    default=128,
    show_default=True,
    metavar="N",
    help="Tokens in a sequence.",
)
OFFLINE: Callable[[Any], Any] = click.option(
    "--offline", is_flag=True, help="Never ask the network for a model."
)


def index_option(command: Command) -> Command:
    """Add `--index DIR`, which arrives as the parameter `index_folder`."""
    return click.option(
        "--index",
        "index_folder",
        metavar="DIR",
        envvar="LIKEWISE_INDEX",
        show_envvar=True,
        type=click.Path(file_okay=True, path_type=Path),
        help="The index: a .likewise folder, or the folder that holds one. [default: the nearest one in the"
        " working directory or its parents]",
    )(command)


def k_option(default: int) -> Callable[[Command], Command]:
    """Add `-k`, the number of passages."""
    return click.option(
        "-k",
        "--k",
        "k",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        metavar="N",
        help="Most passages to return.",
    )


def mode_option(command: Command) -> Command:
    """Add `--mode`."""
    return click.option(
        "--mode",
        type=MODES,
        default="hybrid",
        show_default=True,
        help="Rank by meaning (dense), by words (lexical), or by both.",
    )(command)


def relevance_option(command: Command) -> Command:
    """Add `--min-relevance`, which arrives as the parameter `min_relevance`."""
    return click.option(
        "--min-relevance",
        type=click.FloatRange(0, 1),
        default=0.0,
        metavar="R",
        help="Leave out passages whose estimated relevance is below R, from 0 to 1. [default: 0, keep all]",
    )(command)


def filter_options(command: Command) -> Command:
    """Add the filters, which arrive as `filters`, `paths`, `suffixes` and `languages`."""
    for option in (
        click.option(
            "--language",
            "languages",
            multiple=True,
            metavar="CODE",
            help="Only documents in this language (en, zh, ja ...). Repeatable.",
        ),
        click.option(
            "--suffix",
            "suffixes",
            multiple=True,
            metavar=".EXT",
            help="Only documents with this suffix. Repeatable.",
        ),
        click.option(
            "--path",
            "paths",
            multiple=True,
            metavar="GLOB",
            help="Only documents whose path matches (docs/**). Repeatable.",
        ),
        click.option(
            "--filter",
            "filters",
            multiple=True,
            metavar="EXPR",
            help="Only documents that match: path:GLOB, -path:GLOB, suffix:.md, lang:zh, title:WORDS,"
            " date>=2025-01-01, meta.author=Ann. Repeatable; all must hold.",
        ),
    ):
        command = option(command)
    return command


def make_filter(
    filters: tuple[str, ...], paths: tuple[str, ...], suffixes: tuple[str, ...], languages: tuple[str, ...]
) -> Filter:
    """One filter out of the filter options.

    Raises:
        FilterError: An expression cannot be understood.
    """
    from likewise.retrieval.filters import parse_filter

    return parse_filter(
        [
            *filters,
            *(f"path:{glob}" for glob in paths),
            *(f"suffix:{suffix if suffix.startswith('.') else '.' + suffix}" for suffix in suffixes),
            *(f"lang:{code}" for code in languages),
        ]
    )


def index_path(index_folder: Path | None) -> Path:
    """The index folder that is meant: the given one, or the nearest in the working directory or its parents.

    Raises:
        IndexNotFound: There is none.
    """
    from likewise.index.index import Index

    if index_folder is None:
        return Index.find(None)
    inside = index_folder / ".likewise"
    return inside if index_folder.name != ".likewise" and inside.is_dir() else index_folder


def open_index(index_folder: Path | None) -> Index:
    """Open the index that is meant.

    Raises:
        IndexFolderError: There is none, or it cannot be opened.
    """
    from likewise.index.index import Index

    return Index.open(index_path(index_folder))


def collected(
    name: str, options: Sequence[Callable[[Any], Any]]
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """A decorator that adds options which arrive together, as one mapping.

    Args:
        name: Of the parameter that takes the mapping.
        options: From `click.option` and `click.argument`, in the order of the help.
    """

    def add(command: Callable[..., object]) -> Callable[..., object]:
        names: list[str] = []

        @wraps(command)
        def collect(*args: object, **given: object) -> object:
            return command(*args, **{name: {each: given.pop(each) for each in names}}, **given)

        decorated: Any = collect
        for option in reversed(options):
            decorated = option(decorated)
            names.append(decorated.__click_params__[-1].name)
        wrapped: Callable[..., object] = decorated
        return wrapped

    return add
