"""Answers of `likewise ask --extractive`: spans that a model for questions finds in the passages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from likewise.cli.output import Format, note, screen, write, write_json, write_jsonl
from likewise.cli.terminal import one_line, path_text, printable
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.heads.predictor import Predictor
    from likewise.retrieval.extractive import Extract, Extraction

    Command = TypeVar("Command", bound=Callable[..., object])

_HOW = 'likewise finetune qa squad.json -o reader, then likewise ask "..." --extractive -m reader'


def reader_option(command: Command) -> Command:
    """Add `-m MODEL`, which arrives as the parameter `reader`."""
    return click.option(
        "-m",
        "--reader",
        "reader",
        type=click.Path(path_type=Path),
        metavar="DIR",
        envvar="LIKEWISE_READER",
        show_envvar=True,
        help="The model that --extractive reads with: a folder from likewise finetune qa, or any model for"
        " extractive question answering that transformers saved.",
    )(command)


def check_reader(reader: Path | None, *, extractive: bool) -> None:
    """Refuse a model that would not be used, and to read without one.

    Raises:
        UsageError: Either of the two.
    """
    if extractive and reader is None:
        raise UsageError("expected a model that finds answers for --extractive, found none", remedy=_HOW)
    source = click.get_current_context().get_parameter_source("reader")
    if not extractive and source is click.core.ParameterSource.COMMANDLINE:
        raise UsageError("a model that reads (-m) is for --extractive", remedy="add --extractive")


def load_reader(folder: Path | None) -> Predictor:
    """The model that reads.

    Raises:
        EncoderError: There is no model with a head in the folder, or it cannot be run.
        UsageError: It does something else than find answers.
    """
    from likewise.embedder.heads.predictor import Predictor, read_record

    assert folder is not None
    kind = read_record(folder)["kind"]
    if kind != "questions":
        raise UsageError(f"expected a model for questions in {folder}, found one for {kind}", remedy=_HOW)
    model = Predictor.load(folder)
    assert isinstance(model, Predictor)
    for message in model.notices:
        note(message)
    return model


def print_extraction(found: Extraction, format: Format) -> None:
    """Print the best answer with the passage around it and its place, then the others."""
    if format is Format.JSON:
        write_json(found.to_json())
        return
    if format is Format.JSONL:
        write_jsonl({"version": 1, "type": "answer", **answer.to_json()} for answer in found.answers)
    else:
        _print_answers(found.answers)
    for notice in found.notices:
        note(notice)
    if not found.hits and not found.notices:
        note("no passage answers the question")


def _print_answers(answers: tuple[Extract, ...]) -> None:
    place = screen()
    for number, answer in enumerate(answers, start=1):
        share = place.style(f"{answer.probability:.2f}", dim=True)
        write(f"[{number}] {place.style(one_line(answer.text), bold=True)}  {share}")
        before, text, behind = (printable(part) for part in answer.quote())
        write(f"    {before}{place.style(text, bold=True)}{behind}")
        write(f"    {_place(answer)}")
        if number < len(answers):
            write("")


def _place(answer: Extract) -> str:
    first, last = answer.lines
    lines = f"{first}" if first == last else f"{first}-{last}"
    page = f" (page {answer.hit.page})" if answer.hit.page is not None else ""
    heading = f"  {one_line(answer.hit.heading)}" if answer.hit.heading else ""
    return f"{path_text(answer.path)}:{lines}{page}{heading}"
