"""`likewise predict`: what a fine-tuned model says about texts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.output import Format, note, output_options, screen, warn, write, write_json, write_jsonl
from likewise.cli.progress import Progress
from likewise.cli.terminal import cells, clip, one_line, pad, printable
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.heads.data import Example
    from likewise.index.records import Json

EPILOG = """\b
Examples:
  likewise predict sentiment "A joy from beginning to end."
  likewise predict sentiment --file reviews.txt --jsonl > predictions.jsonl
  likewise predict entailment "A dog runs." "An animal moves."
  cat mails.txt | likewise predict names
  likewise predict reader --question "Who rotates the keys?" --context-file handbook.txt

A file has one text per line, of a model for pairs two texts with a tab between; a CSV, TSV, JSON lines or
Parquet file is read by its columns. For a model that answers questions it needs the columns question and
context.
"""

# Examples that are predicted together: enough for full batches, few enough to keep memory flat.
_BLOCK = 512
# Cells of a line where there is no terminal.
_PIPE_WIDTH = 200
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


@click.command(short_help="Label, tag or answer with a fine-tuned model.", epilog=EPILOG)
@click.argument("model", metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read examples from a file; - is standard input, which is also read if there is no TEXT.",
)
@click.option(
    "--text-column",
    multiple=True,
    metavar="NAME",
    help="Column of a text in a table. [default: by its name]",
)
@click.option("--question", metavar="TEXT", help="A question, for a model that answers.")
@click.option("--context", metavar="TEXT", help="The text that may hold the answer.")
@click.option(
    "--context-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A UTF-8 file that may hold the answer.",
)
@click.option(
    "--runtime",
    type=click.Choice(["auto", "openvino", "torch"]),
    default="auto",
    show_default=True,
    help="What computes; auto is OpenVINO on the CPU where it agrees with torch.",
)
@click.option("--device", metavar="NAME", help="cpu, cuda, mps, or auto. [default: cpu]")
@output_options
def predict(
    model: Path,
    texts: tuple[str, ...],
    file: Path | None,
    text_column: tuple[str, ...],
    question: str | None,
    context: str | None,
    context_file: Path | None,
    runtime: Any,
    device: str | None,
    format: Format,
) -> None:
    """Print what MODEL, a folder from likewise finetune, says about each TEXT, with probabilities."""
    from likewise.embedder.heads.predictor import Predictor, read_record

    if texts and file is not None:
        raise UsageError("expected texts or --file, found both")
    record = read_record(model)
    kind, pair = record["kind"], bool(record["settings"].get("pair"))
    asked = (question, context, context_file) != (None, None, None)
    if asked != (kind == "questions") and (asked or texts):
        wanted = "--question with --context" if kind == "questions" else "texts"
        raise UsageError(f"{model} is a model for {kind}: expected {wanted}")
    examples = (
        [_question(question, context, context_file)]
        if asked
        else _examples(kind, pair, texts, file, text_column)
    )
    if not examples:
        raise UsageError(
            "expected at least one text, found none", remedy=f'likewise predict {model} "a text"'
        )
    predictor = Predictor.load(model, runtime=runtime, device=device)
    for message in predictor.notices:
        note(message)
    found = _predicted(predictor, examples)
    if format is Format.JSON:
        rows: list[Json] = [_json(example, prediction) for example, prediction in found]
        write_json({"version": 1, "model": str(model), "kind": kind, "predictions": rows})
    elif format is Format.JSONL:
        write_jsonl({"version": 1, **_json(example, prediction)} for example, prediction in found)
    else:
        for example, prediction in found:
            _print(kind, example, prediction)


def _predicted(predictor: Any, examples: Sequence[Example]) -> Iterator[tuple[Example, Any]]:
    """Examples with their predictions, block by block; says at the end how many texts were cut."""
    truncated = 0
    with Progress() as progress:
        for start in range(0, len(examples), _BLOCK):
            block = examples[start : start + _BLOCK]
            progress.show("predicting", done=start, total=len(examples))
            predictions, cut = predictor.predict_counted(block)
            truncated += cut
            progress.clear()
            yield from zip(block, predictions, strict=True)
    if truncated:
        warn(f"{truncated} of {len(examples)} texts are longer than the model takes and were cut")


def _question(question: str | None, context: str | None, context_file: Path | None) -> Example:
    from likewise.embedder.heads.data import QuestionExample
    from likewise.embedder.tables import read_text

    if question is None or (context is None) == (context_file is None):
        raise UsageError("expected --question with --context or --context-file")
    text = context if context_file is None else read_text(context_file)
    assert text is not None
    return QuestionExample(question, text)


def _examples(
    kind: str, pair: bool, texts: tuple[str, ...], file: Path | None, text_columns: tuple[str, ...]
) -> list[Example]:
    from likewise.embedder.heads.data import TextExample
    from likewise.embedder.heads.readers import Reading, read_examples
    from likewise.embedder.tables import suffix_of

    if file is not None and suffix_of(file) in (*_TABLES, ".json", ".conll", ".bio"):
        known: Any = kind
        reading = Reading(kind=known, pair=pair, text_columns=text_columns)
        if kind == "tagging" and suffix_of(file) in _TABLES and not text_columns:
            reading = Reading(kind="classification")  # texts that are not cut into words yet
        return [_unlabelled(e) for e in read_examples(str(file), reading, labelled=False).examples]
    if kind == "questions":
        raise UsageError(
            "expected --question with --context, or a --file of questions",
            remedy='likewise predict MODEL --question "..." --context "..."',
        )
    if texts and pair:
        if len(texts) % 2:
            raise UsageError(f"expected pairs of texts, found {len(texts)} texts")
        return [TextExample((a, b)) for a, b in zip(texts[0::2], texts[1::2], strict=True)]
    if texts:
        return [TextExample((text,)) for text in texts]
    lines = _lines(file)
    if not pair:
        return [TextExample((line,)) for line in lines]
    examples: list[Example] = []
    for number, line in enumerate(lines, start=1):
        parts = line.split("\t")
        if len(parts) != 2:
            raise UsageError(f"expected two texts with a tab between in line {number}, found {len(parts)}")
        examples.append(TextExample((parts[0], parts[1])))
    return examples


def _unlabelled(example: Example) -> Example:
    from dataclasses import replace

    from likewise.embedder.heads.data import TextExample

    return replace(example, label=None) if isinstance(example, TextExample) else example


def _lines(file: Path | None) -> list[str]:
    """Texts of a file or of standard input, one per line, empty lines left out."""
    try:
        if file is None or str(file) == "-":
            if file is None and sys.stdin.isatty():
                raise UsageError("expected texts, found none and standard input is a terminal")
            text = sys.stdin.buffer.read().decode("utf-8-sig")
        else:
            text = file.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"expected UTF-8, found other bytes at {error.start} of {file or 'standard input'}",
            remedy="iconv -f ENCODING -t UTF-8",
        ) from error
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def _json(example: Example, prediction: Any) -> dict[str, Json]:
    from likewise.embedder.heads.data import QuestionExample, TextExample

    if isinstance(example, QuestionExample):
        return {"id": example.key, "question": example.question, **prediction.to_json()}
    if isinstance(example, TextExample):
        texts: Json = example.texts[0] if len(example.texts) == 1 else list(example.texts)
    else:
        texts = example.text
    return {"text": texts, **prediction.to_json()}


def _print(kind: str, example: Example, prediction: Any) -> None:
    place = screen()
    if kind == "tagging":
        write(printable(prediction.marked()))
        return
    if kind == "questions":
        answer = prediction.answer
        said = one_line(answer.text) if answer.text else "(no answer)"
        where = f"  characters {answer.start}-{answer.end}" if answer.text else ""
        write(f"{said}  {place.style(f'{answer.probability:.4f}{where}', dim=True)}")
        return
    if kind == "multilabel":
        head = ", ".join(
            f"{one_line(name)} {prediction.to_json()['probabilities'].get(name, 0):.4f}"
            for name in prediction.labels
        )
        head = head or "(none)"
    elif kind == "regression":
        head = f"{prediction.value:.4f}"
    else:
        head = f"{one_line(prediction.label)}  {prediction.probability:.4f}"
    text = one_line("  |  ".join(getattr(example, "texts", ())))
    # The text is there to be recognised; --jsonl has all of it.
    width = place.width if place.is_terminal else _PIPE_WIDTH
    text = clip(text, max(20, width - max(20, cells(head)) - 2))
    write(f"{pad(head, 20)}  {text}")
