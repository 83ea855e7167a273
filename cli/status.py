"""`likewise status`: what the index holds, and what it left out."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.options import index_option, open_index
from likewise.cli.output import (
    Format,
    columns,
    count_text,
    output_options,
    screen,
    size_text,
    write,
    write_json,
    write_jsonl,
)
from likewise.cli.terminal import path_text

if TYPE_CHECKING:
    from likewise.index.records import Json
    from likewise.index.rows import DocumentRow
    from likewise.index.status import IndexStatus

EPILOG = """\b
Examples:
  likewise status
  likewise status --documents
  likewise status --json | jq '.skipped[] | {path, state, reason}'
"""

# Skipped documents that a person sees at a terminal; a pipe, --documents and --json give all.
_SHOWN = 30


@click.command(short_help="Show what the index holds and what it skipped.", epilog=EPILOG)
@click.option("--documents", is_flag=True, help="List every document instead, with its state and passages.")
@index_option
@output_options
def status(documents: bool, index_folder: Path | None, format: Format) -> None:
    """Show what the index holds: documents by state, the encoder, sizes, and what was skipped and why."""
    with open_index(index_folder) as index:
        found = index.status()
        if documents or format is Format.JSONL:
            with index.view() as view:
                _print_documents(list(view.documents()), format)
            return
    if format is Format.JSON:
        write_json(status_json(found))
    else:
        _print_status(found)


def _print_status(found: IndexStatus) -> None:
    place = screen()
    counts = found.counts
    states = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.states.items()))
    rows = [
        ("index", path_text(str(found.folder))),
        ("incomplete", _incomplete(found)),
        ("sources", ", ".join(path_text(source.path) for source in found.sources) or "none"),
        ("documents", f"{counts.documents:,} ({states})" if counts.documents else "none"),
        ("passages", f"{counts.passages:,}"),
        ("languages", _languages(found)),
        ("encoder", _encoder(found)),
        ("coverage", _coverage(found)),
        ("passage size", _chunking(found)),
        ("snapshot", _snapshot(found)),
        ("size on disk", size_text(found.bytes)),
        ("last change", _time(found.synced_at)),
    ]
    if found.writer is not None:
        rows.append(("being written", f"by process {found.writer.pid} on {found.writer.host}"))
    for line in columns([row for row in rows if row[1]]):
        write(line)
    problems = [
        *((item.key, str(item.state), item.reason) for item in found.skipped),
        *((key, "left out", reason) for key, reason in found.left_out),
        *(
            (key, "lossy", f"{count_text(count, 'character')} could not be decoded")
            for key, count in found.lossy
        ),
    ]
    if not problems:
        return
    write("")
    shown = problems[:_SHOWN] if place.is_terminal else problems
    for line in columns(((path_text(key), state, reason) for key, state, reason in shown)):
        write(line)
    if len(problems) > len(shown):
        write(f"and {len(problems) - len(shown):,} more: likewise status --documents")


def _incomplete(found: IndexStatus) -> str:
    from likewise.index.unfinished import unfinished_state

    state, command = unfinished_state(found.folder, found.unfinished)
    return path_text(f"{state}; {command} goes on from there" if command else state)


def _languages(found: IndexStatus) -> str:
    ranked = sorted(found.languages.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{language or 'unknown'} {count:,}" for language, count in ranked)


def _encoder(found: IndexStatus) -> str:
    if not found.fingerprint:
        return "none yet"
    return f"{path_text(found.encoder_name)} ({found.dimension} dimensions, {found.fingerprint[:12]})"


def _coverage(found: IndexStatus) -> str:
    coverage = found.coverage
    if coverage is None:
        return ""
    text = f"{coverage.value:.0%} of the text by the encoder's vocabulary"
    return f"{text}: it was not made for this language (likewise doctor)" if coverage.poor else text


def _chunking(found: IndexStatus) -> str:
    target = found.chunking.target_tokens
    overlap = found.chunking.overlap_tokens
    size = f"{target} tokens" if target else "chosen by the encoder"
    return f"{size}, {overlap} overlapping" if overlap else size


def _snapshot(found: IndexStatus) -> str:
    snapshot, counts = found.snapshot, found.counts
    tail = (
        f"{counts.added:,} passages added and {counts.removed:,} removed since"
        if counts.added or counts.removed
        else ""
    )
    if snapshot is None:
        return f"none yet{'; ' + tail if tail else ''}" if counts.passages else ""
    recall = "" if snapshot.recall >= 1.0 else f", recall@10 {snapshot.recall:.3f}"
    text = f"{snapshot.spec}, {snapshot.count:,} vectors, {size_text(snapshot.bytes)}{recall}"
    return f"{text}; {tail}" if tail else text


def _time(seconds: float | None) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M") if seconds is not None else ""


def _print_documents(rows: list[DocumentRow], format: Format) -> None:
    values = [document_json(row) for row in rows]
    if format is Format.JSON:
        write_json({"version": 1, "documents": [*values]})
    elif format is Format.JSONL:
        write_jsonl(values)
    elif screen().is_terminal:
        table = [
            (str(row.state), str(row.passages), row.language, path_text(row.key), row.reason) for row in rows
        ]
        for line in columns([("state", "passages", "language", "path", "reason"), *table]):
            write(line)
    else:
        for row in rows:
            write(
                "\t".join(
                    (
                        str(row.state),
                        str(row.passages),
                        row.language,
                        path_text(row.key),
                        path_text(row.reason),
                    )
                )
            )


def document_json(row: DocumentRow) -> dict[str, Json]:
    """The shape of one document in `status --documents --json`."""
    return {
        "version": 1,
        "path": row.key,
        "state": str(row.state),
        "reason": row.reason,
        "passages": row.passages,
        "title": row.title,
        "language": row.language,
        "reader": row.reader,
        "encoding": row.encoding,
        "lossy": row.lossy,
        "notes": list(row.notes),
        "metadata": dict(row.metadata),
        "size": row.size,
        "modified": row.mtime_ns / 1e9,
        "content_hash": row.content_hash,
    }


def status_json(found: IndexStatus) -> dict[str, Json]:
    """The shape of `status --json`."""
    snapshot = found.snapshot
    return {
        "version": 1,
        "index": str(found.folder),
        "base": str(found.base),
        "sources": [source.to_json() for source in found.sources],
        "encoder": {
            "name": found.encoder_name,
            "fingerprint": found.fingerprint,
            "dimension": found.dimension,
        },
        "coverage": None if found.coverage is None else found.coverage.to_json(),
        "chunking": found.chunking.to_json(),
        "documents": found.counts.documents,
        "states": {str(state): count for state, count in found.counts.states.items()},
        "languages": dict(found.languages),
        "passages": found.counts.passages,
        "tail": {"added": found.counts.added, "removed": found.counts.removed},
        "snapshot": None
        if snapshot is None
        else {
            "generation": snapshot.generation,
            "file": snapshot.file,
            "spec": snapshot.spec,
            "vectors": snapshot.count,
            "bytes": snapshot.bytes,
            "recall": snapshot.recall,
            "created": snapshot.created,
        },
        "bytes": found.bytes,
        "synced_at": found.synced_at,
        "unfinished": list(found.unfinished),
        "writer": None if found.writer is None else {"pid": found.writer.pid, "host": found.writer.host},
        "skipped": [
            {"path": item.key, "state": str(item.state), "reason": item.reason} for item in found.skipped
        ],
        "left_out": [{"path": key, "reason": reason} for key, reason in found.left_out],
        "lossy": [{"path": key, "characters": count} for key, count in found.lossy],
    }
