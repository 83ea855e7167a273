"""Jupyter notebooks: cells in order, the beginning of their outputs, nothing of their pictures.

The text is what a person reads, not the file's JSON. Each cell begins with a cut; code and outputs are
verbatim; headings come from the Markdown cells. Nothing is executed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from likewise.index.readers.base import Reader, Source, Unreadable
from likewise.index.readers.compose import TextBuilder, clean
from likewise.index.readers.decoding import decode
from likewise.index.readers.formats.markdown import structure
from likewise.index.records import DocumentState, Extraction, Json

_MAX_OUTPUT = 2000  # characters of a cell's outputs: a training log of megabytes says nothing more


def _read(source: Source) -> Extraction:
    decoded = decode(source.data)
    try:
        notebook = json.loads(decoded.text)
    except ValueError as error:
        raise Unreadable(DocumentState.FAILED, f"is no notebook: {error}") from error
    if not isinstance(notebook, dict):
        raise Unreadable(DocumentState.FAILED, "is no notebook: expected an object at the top")
    builder = TextBuilder(source.max_characters)
    title = ""
    shortened = 0
    for cell in _cells(notebook):
        text = clean(_joined(cell.get("source", cell.get("input")))).strip("\n")
        kind = cell.get("cell_type")
        if not text.strip() and kind != "code":
            continue
        builder.mark_break()
        if kind == "markdown":
            builder.block(text)
            found = structure(text)
            offset = builder.length - len(text)
            builder.place(found.headings, found.verbatim, offset=offset)
            title = title or next((item.title for item in found.headings if item.level == 1), "")
        elif kind == "heading":  # notebooks before format 4
            builder.heading(text, level=int(_number(cell.get("level"), 1)))
        elif kind == "code":
            builder.block(text, verbatim=True)
            output = "\n".join(part for part in map(clean, _outputs(cell)) if part.strip()).strip("\n")
            if len(output) > _MAX_OUTPUT:
                output, shortened = output[:_MAX_OUTPUT] + "\u2026", shortened + 1
            builder.block(output, verbatim=True)
        else:
            builder.block(text)
    if shortened:
        builder.notes.append(
            f"the output of {shortened} cells was shortened to {_MAX_OUTPUT} characters each"
        )
    metadata = _metadata(notebook)
    return builder.extraction(
        title=_text(metadata.get("title")) or title,
        metadata=metadata,
        encoding=decoded.encoding,
        lossy=decoded.lossy,
    )


def _cells(notebook: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    sheets = notebook.get("worksheets")
    holders = sheets if isinstance(sheets, list) else [dict(notebook)]
    for holder in holders:
        cells = holder.get("cells") if isinstance(holder, dict) else None
        for cell in cells if isinstance(cells, list) else ():
            if isinstance(cell, dict):
                yield cell


def _outputs(cell: Mapping[str, Json]) -> Iterator[str]:
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if not isinstance(output, dict):
            continue
        if "ename" in output:
            yield f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
            continue
        data = output.get("data")
        # Format 3 keeps text beside the type of output, format 4 in a bundle by media type.
        plain = data.get("text/plain") if isinstance(data, dict) else None
        yield _joined(output.get("text", plain))


def _metadata(notebook: Mapping[str, Json]) -> dict[str, Json]:
    found = notebook.get("metadata")
    metadata: Mapping[str, Json] = found if isinstance(found, dict) else {}
    kept: dict[str, Json] = {name: metadata[name] for name in ("title", "authors") if name in metadata}
    kernel = metadata.get("kernelspec")
    language = metadata.get("language_info")
    name = _text(language.get("name")) if isinstance(language, dict) else ""
    if not name and isinstance(kernel, dict):
        name = _text(kernel.get("language"))
    return {**kept, "code": name} if name else kept


def _joined(value: Json) -> str:
    """A multi-line string of the format: one string or a list of lines."""
    if isinstance(value, list):
        return "".join(item for item in value if isinstance(item, str))
    return _text(value)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Json, default: int) -> int:
    return value if isinstance(value, int) and 1 <= value <= 6 else default


READER = Reader(
    name="notebook",
    version=1,
    read=_read,
    suffixes=frozenset((".ipynb",)),
)
