"""`likewise get`: the text behind a hit or a citation.

Reads only documents that the index lists, and only as long as they lie inside its sources.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from likewise.cli.options import index_option, open_index
from likewise.cli.output import Format, output_options, warn, write, write_json, write_jsonl
from likewise.cli.terminal import path_text, printable
from likewise.errors import ReadError, SourceError, UsageError

if TYPE_CHECKING:
    from likewise.index.index import Index
    from likewise.index.records import Json
    from likewise.index.rows import DocumentRow
    from likewise.index.view import IndexView

EPILOG = """\b
Examples:
  likewise get 1207
  likewise get docs/keys.md:12-30
  likewise get docs/keys.md --json
"""

# PATH, PATH:FIRST, PATH:FIRST-LAST or PATH:FIRST- ; a drive letter's colon is followed by no digit.
_RANGE = re.compile(r"(?P<path>.+):(?P<first>\d{1,9})(?P<dash>-(?P<last>\d{1,9})?)?", re.DOTALL)

FileState = Literal["unchanged", "changed", "missing"]


class Found(NamedTuple):
    """Text of a passage or of lines of a document, and what is known of it."""

    path: str
    title: str
    heading: str
    lines: tuple[int, int]
    page: int | None
    passage_id: int | None
    file: FileState
    text: str

    def to_json(self) -> dict[str, Json]:
        """The shape of `get --json`."""
        return {"version": 1, **self._asdict(), "lines": list(self.lines)}


@click.command(short_help="Print a passage, or lines of an indexed document.", epilog=EPILOG)
@click.argument("target", metavar="ID|PATH[:FIRST[-LAST]]")
@index_option
@output_options
def get(target: str, index_folder: Path | None, format: Format) -> None:
    """Print the text of a passage by its id, or a document of the index, or some of its lines.

    Lines are those that hits and citations name. For PDF and other formats that are not text they are lines
    of the text that was read from the file. Says so if the file changed since it was indexed.
    """
    with open_index(index_folder) as index, index.view() as view:
        found = _find(index, view, target)
    if found.file == "changed":
        warn(f"{found.path} changed since it was indexed; likewise index brings the index up to date")
    elif found.file == "missing":
        warn(f"{found.path} is gone; this is what the index holds of it")
    if format is Format.JSON:
        write_json(found.to_json())
    elif format is Format.JSONL:
        write_jsonl([found.to_json()])
    else:
        write(printable(found.text))


def _find(index: Index, view: IndexView, target: str) -> Found:
    documents = {document.key: document for document in view.documents()}
    if document := _document(documents, target, index.base):
        return _lines(index, document, 1, None)
    match = _RANGE.fullmatch(target)
    if match and (document := _document(documents, match["path"], index.base)):
        first = int(match["first"])
        last = int(match["last"]) if match["last"] else None if match["dash"] else first
        return _lines(index, document, first, last)
    if target.isdecimal():
        return _passage(index, view, documents, int(target))
    from difflib import get_close_matches

    path = match["path"] if match else target
    if os.path.isdir(path):
        raise UsageError(
            f"expected a file or a passage id, found the folder {path_text(path)}",
            remedy="likewise status --documents, to see what the index holds",
        )
    near = get_close_matches(path, documents, n=1)
    raise UsageError(
        f"{path_text(path)} is not in the index, and is no passage id",
        remedy=f"likewise get {near[0]}"
        if near
        else "likewise status --documents, to see what the index holds",
    )


def _document(documents: dict[str, DocumentRow], path: str, base: Path) -> DocumentRow | None:
    from likewise.retrieval.similar import document_keys

    return next((documents[key] for key in document_keys(path, base) if key in documents), None)


def _passage(index: Index, view: IndexView, documents: dict[str, DocumentRow], id_: int) -> Found:
    stored = view.passages([id_]).get(id_)
    if stored is None:
        raise UsageError(
            f"no passage {id_} in the index: it never was, or its text has changed since",
            remedy="search again to see the ids of today",
        )
    return Found(
        path=stored.key,
        title=stored.title,
        heading=" > ".join(stored.passage.headings),
        lines=stored.passage.lines,
        page=stored.passage.page,
        passage_id=id_,
        file=_file_state(index, documents[stored.key]),
        text=stored.passage.text,
    )


def _lines(index: Index, document: DocumentRow, first: int, last: int | None) -> Found:
    from likewise.index.added import is_added
    from likewise.index.readers.base import Vanished
    from likewise.index.readers.isolate import ReaderPool
    from likewise.index.records import Skip

    if is_added(document.reader):
        raise UsageError(
            f"{path_text(document.key)} is no file: the index holds only its passages",
            remedy="likewise get ID, with the passage id of a hit",
        )
    path = _inside_sources(index, document)
    with ReaderPool() as pool:
        content, outcome = pool.read(path, document.key)
    if isinstance(outcome, Vanished):
        raise ReadError(
            f"{path_text(document.key)} was deleted or moved after it was indexed",
            remedy="likewise index, to bring the index up to date; likewise get ID still shows a passage",
        )
    if isinstance(outcome, Skip):
        raise ReadError(
            f"{path_text(document.key)} cannot be read: {outcome.reason}",
            remedy="likewise index, to bring the index up to date",
        )
    lines = outcome.text.split("\n")
    if lines and not lines[-1]:
        lines.pop()  # the line feed at the end ends the last line, it does not begin another
    last = len(lines) if last is None else last
    if not 1 <= first <= last or (first > len(lines) and lines):
        raise UsageError(
            f"expected lines between 1 and {len(lines)}, found {first}-{last}",
            remedy=f"likewise get {path_text(document.key)}:1-{len(lines)}",
        )
    last = min(last, len(lines))
    changed = content is None or content.content_hash != document.content_hash
    return Found(
        path=document.key,
        title=document.title,
        heading="",
        lines=(first, last),
        page=None,
        passage_id=None,
        file="changed" if changed else "unchanged",
        text="\n".join(lines[first - 1 : last]),
    )


def _file_state(index: Index, document: DocumentRow) -> FileState:
    from likewise.index.added import is_added
    from likewise.index.readers.base import ReaderLimits, Vanished
    from likewise.index.readers.fileaccess import content_of
    from likewise.index.records import Skip

    if is_added(document.reader):
        return "unchanged"  # there is no file that could differ
    content = content_of(_inside_sources(index, document), ReaderLimits())
    if isinstance(content, Vanished):
        return "missing"
    if isinstance(content, Skip) or content.content_hash != document.content_hash:
        return "changed"
    return "unchanged"


def _inside_sources(index: Index, document: DocumentRow) -> Path:
    """Where a document lies, if that is still inside a source: a folder may have become a link meanwhile.

    Raises:
        SourceError: It leads out of the sources.
    """
    path = index.base / os.fsdecode(document.path_bytes)
    real = Path(os.path.realpath(path.parent)) / path.name
    if any(real.is_relative_to(source.location(index.base)) for source in index.sources):
        return real
    raise SourceError(
        f"{path_text(document.key)} leads out of the folders that were indexed",
        remedy="likewise index, to bring the index up to date",
    )
