"""`likewise embed`: texts to vectors, as lines, JSON or a NumPy file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from likewise.cli.output import Format, note, output_options, screen, warn, write, write_json, write_jsonl
from likewise.cli.progress import Progress
from likewise.cli.terminal import cells, clip, one_line, pad
from likewise.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from likewise.embedder.protocol import Role, TextEncoder

EPILOG = """\b
Examples:
  likewise embed "rotate a signing key"
  likewise embed --file questions.txt --role query --jsonl > vectors.jsonl
  likewise embed --file questions.txt --out vectors.npy
  cat questions.txt | likewise embed --out - > vectors.npy

In a pipe each vector is one line of numbers, which numpy.loadtxt reads.
"""

# Texts that are embedded together: enough for full batches, little enough to see progress and to keep
# memory flat when the vectors are streamed.
_BATCH = 512


@click.command(short_help="Turn texts into vectors.", epilog=EPILOG)
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read one text per line from a UTF-8 file; - is standard input, which is also read if there is no"
    " TEXT.",
)
@click.option(
    "--encoder", metavar="NAME", help="Model folder, hub id, or hash. [default: all-MiniLM-L6-v2-zh]"
)
@click.option(
    "--role",
    type=click.Choice(["passage", "query"]),
    default="passage",
    show_default=True,
    help="Which of the encoder's prompts to put in front.",
)
@click.option(
    "--out",
    metavar="FILE.npy",
    help="Write a NumPy array of float32, one row per text, instead; - is standard output.",
)
@output_options
def embed(
    texts: tuple[str, ...],
    file: Path | None,
    encoder: str | None,
    role: Role,
    out: str | None,
    format: Format,
) -> None:
    """Turn each TEXT into a vector of length 1: the inner product of two is their cosine similarity."""
    if texts and file is not None:
        raise UsageError("expected texts or --file, found both", remedy="likewise embed --file FILE")
    if out is not None and format is not Format.TEXT:
        raise UsageError("expected --out or --json, found both", remedy="likewise embed TEXT --out FILE.npy")
    if out == "-" and sys.stdout.isatty():
        raise UsageError(
            "expected a pipe or a file for a NumPy array, found a terminal", remedy="--out vectors.npy"
        )
    given = list(texts) or _lines(file)
    if not given:
        raise UsageError("expected at least one text, found none", remedy='likewise embed "a text"')

    from likewise.embedder import load_encoder

    model = load_encoder(encoder)
    batches = _embedded(model, given, role)
    if out is not None:
        _write_array(out, batches)
    elif format is Format.JSON:
        rows = [vector.tolist() for _, vectors in batches for vector in vectors]
        write_json(
            {
                "version": 1,
                "encoder": model.name,
                "fingerprint": model.fingerprint,
                "dimension": model.dimension,
                "role": role,
                "texts": list(given),
                "vectors": rows,
            }
        )
    elif format is Format.JSONL:
        for part, vectors in batches:
            write_jsonl(
                {"version": 1, "text": text, "vector": vector.tolist()}
                for text, vector in zip(part, vectors, strict=True)
            )
    else:
        for part, vectors in batches:
            _print_vectors(part, vectors)


def _lines(file: Path | None) -> list[str]:
    """Texts of a file or of standard input, one per line, empty lines left out."""
    try:
        if file is None or str(file) == "-":
            if file is None and sys.stdin.isatty():
                raise UsageError(
                    "expected texts, found none and standard input is a terminal",
                    remedy='likewise embed "a text", or --file FILE',
                )
            data = sys.stdin.buffer.read()
        else:
            data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"expected UTF-8, found other bytes at {error.start} of {file or 'standard input'}",
            remedy="iconv -f ENCODING -t UTF-8",
        ) from error
    return [line for line in text.split("\n") if line.strip()]


def _embedded(
    model: TextEncoder, texts: list[str], role: Role
) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
    """Texts with their vectors, part by part; says at the end how many were cut."""
    truncated = 0
    with Progress() as progress:
        for start in range(0, len(texts), _BATCH):
            part = texts[start : start + _BATCH]
            progress.show("embedding", done=start, total=len(texts))
            embedded = model.embed(part, role=role)
            truncated += len(embedded.truncated)
            progress.clear()
            yield part, embedded.vectors
    if truncated:
        warn(
            f"{truncated} of {len(texts)} texts are longer than the {model.passage_tokens} tokens that"
            f" {model.name} takes and were cut"
        )


def _write_array(out: str, batches: Iterator[tuple[list[str], NDArray[np.float32]]]) -> None:
    import numpy as np

    array = np.concatenate([vectors for _, vectors in batches])
    if out == "-":
        _save(sys.stdout.buffer, array)
        return
    try:
        with open(out, "wb") as file:
            _save(file, array)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror or error}") from error
    note(f"wrote {array.shape[0]} vectors of dimension {array.shape[1]} to {out}")


def _save(file: BinaryIO, array: NDArray[np.float32]) -> None:
    import numpy as np

    np.save(file, array, allow_pickle=False)


def _print_vectors(texts: list[str], vectors: NDArray[np.float32]) -> None:
    place = screen()
    if not place.is_terminal:
        for vector in vectors:
            write(" ".join(f"{number:.8g}" for number in vector.tolist()))
        return
    # A person wants to see that it worked, not hundreds of numbers.
    for text, vector in zip(texts, vectors, strict=True):
        numbers = " ".join(f"{number:7.4f}" for number in vector[:5].tolist())
        tail = f"  [{numbers} …] {len(vector)} numbers"
        room = max(10, place.width - cells(tail))
        write(pad(clip(one_line(text), room), room) + place.style(tail, dim=True))
