"""`likewise index`: create an index, or bring it up to date."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.options import index_option, index_path
from likewise.cli.output import Format, count_text, note, output_options, warn, write, write_json, write_jsonl
from likewise.cli.progress import Progress
from likewise.cli.terminal import path_text
from likewise.errors import IndexFolderError, IndexNotFound, UsageError

if TYPE_CHECKING:
    from likewise.index.index import Index
    from likewise.index.readers.base import ReaderLimits
    from likewise.index.records import Json
    from likewise.index.report import SyncEvent, SyncReport
    from likewise.index.settings import ChunkSettings

EPILOG = """\b
Examples:
  likewise index ~/handbook
  likewise index docs src --index .likewise --include "*.md" --exclude "drafts/**"
  likewise index                      # update what the nearest index holds
  likewise index --encoder BAAI/bge-m3 --reembed
  likewise index ~/handbook --strict --json

A run that is stopped keeps what was saved; the next one goes on from there.
.gitignore and .likewiseignore are honoured, hidden folders are left out.
"""

# Lines about single documents that a run shows; `likewise status` shows them all.
_SHOWN = 20

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def parse_size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Bytes of a size such as 500k, 20MB or 1G; units are powers of a thousand."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)b?", value.strip().lower())
    size = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    if size < 1:
        raise click.BadParameter(f"expected a size such as 500k, 20MB or 1G, found {value!r}", ctx, param)
    return size


@click.command(short_help="Create an index of folders, or bring it up to date.", epilog=EPILOG)
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=click.Path(path_type=Path))
@click.option(
    "--encoder",
    metavar="NAME",
    help="Encoder of a new index, or with --reembed the one to change to: a model folder, a hub id, or hash."
    " [default: all-MiniLM-L6-v2-zh]",
)
@click.option(
    "--include",
    multiple=True,
    metavar="GLOB",
    help="Only files that match, below the folder (*.md, docs/**). Repeatable; remembered.",
)
@click.option(
    "--exclude", multiple=True, metavar="GLOB", help="Leave out files that match. Repeatable; remembered."
)
@click.option("--strict", is_flag=True, help="Exit with status 3 if a document was skipped.")
@click.option("--force", is_flag=True, help="Index even a whole drive or the home folder.")
@click.option("--reembed", is_flag=True, help="Embed the stored passages again, with --encoder.")
@click.option(
    "--chunk-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens that a passage aims at. [default: 80% of what the encoder takes, at most 400]",
)
@click.option(
    "--overlap",
    type=click.IntRange(min=0),
    metavar="N",
    help="Tokens that a passage repeats from the one before it. [default: 0]",
)
@click.option(
    "--max-file-size",
    callback=parse_size,
    metavar="SIZE",
    help="Skip larger files in this run (500k, 20MB, 1G). [default: 32 MiB]",
)
@click.option(
    "--forget",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Drop a source and its documents from the index; the files stay. Repeatable.",
)
@index_option
@output_options
def index(
    folders: tuple[Path, ...],
    encoder: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    strict: bool,
    force: bool,
    reembed: bool,
    chunk_tokens: int | None,
    overlap: int | None,
    max_file_size: int | None,
    forget: tuple[Path, ...],
    index_folder: Path | None,
    format: Format,
) -> None:
    """Index each FOLDER, or what an index already holds if there is none.

    One FOLDER gets its index inside, as FOLDER/.likewise, unless an index around it holds it already; several
    get one in the working directory. Only what changed since the last run is read and embedded.
    """
    from likewise.index.index import Index
    from likewise.index.report import SyncInterrupted

    folder = _where(folders, index_folder)
    listener = _Listener(format)
    with Index.open(folder, encoder=encoder) as opened:
        settings = _chunking(opened, chunk_tokens, overlap)
        if forget:
            for source in forget:
                dropped = opened.forget(source)
                note(f"forgot {path_text(str(source))} and its {count_text(dropped, 'document')}")
            if not folders:
                return
        try:
            with listener.progress:
                report = opened.sync(
                    list(folders) or None,
                    include=include,
                    exclude=exclude,
                    reembed=reembed,
                    chunking=settings,
                    limits=_limits(max_file_size) if max_file_size else None,
                    force=force,
                    progress=listener,
                )
        except SyncInterrupted as interrupted:
            _print_report(interrupted.report, opened, format, strict=strict)
            warn("stopped; what is counted above is saved, and the next run goes on from there")
            raise
        _print_report(report, opened, format, strict=strict)
        _warn_of_coverage(opened)
    if strict and report.skipped:
        raise click.exceptions.Exit(3)


class _Listener:
    """Shows how far a sync is: a bar for people, lines of JSON for programs."""

    def __init__(self, format: Format) -> None:
        self.progress = Progress()
        self._lines = format is Format.JSONL
        self._next = 0.0
        self._phase = ""

    def __call__(self, event: SyncEvent) -> None:
        if not self._lines:
            self.progress.show(
                _PHASES[event.phase],
                done=event.done,
                total=event.total,
                detail=_detail(event),
            )
            return
        # Once a second is often enough to show life, and seldom enough to be kept in a log.
        now = time.monotonic()
        if event.phase != self._phase or now >= self._next:
            self._phase, self._next = event.phase, now + 1.0
            write_jsonl(
                [
                    {
                        "version": 1,
                        "type": "progress",
                        "phase": event.phase,
                        "done": event.done,
                        "total": event.total,
                        "path": event.path,
                        "embedded": event.embedded,
                        "to_embed": event.to_embed,
                    }
                ]
            )


def _detail(event: SyncEvent) -> str:
    """The passages, which tell more than files where one file is a whole book, and the file in hand."""
    if event.phase != "index" or not event.to_embed:
        return event.path
    return f"{event.embedded:,} of {count_text(event.to_embed, 'passage')} embedded  {event.path}"


_PHASES = {
    "scan": "looking for files",
    "compare": "comparing",
    "index": "reading",
    "reembed": "embedding again",
    "publish": "writing the vector snapshot",
}


def _where(folders: tuple[Path, ...], index_folder: Path | None) -> Path:
    """The index folder that is meant.

    Raises:
        UsageError: No folder is given and there is no index to update.
    """
    from likewise.index.index import INDEX_FOLDER, Index

    if index_folder is not None:
        return index_path(index_folder)
    if not folders:
        try:
            return Index.find()
        except IndexNotFound as error:
            raise UsageError(error.message, remedy="likewise index .") from None
    start = Path.cwd()
    if len(folders) == 1:
        start = folders[0].absolute()
        start = start if start.is_dir() else start.parent
    try:
        around = Index.find(start)
    except IndexNotFound:
        return start / INDEX_FOLDER
    if around.parent == start or len(folders) > 1:
        return around
    # An index further up that does not hold the folder is somebody else's business, in whatever shape it is.
    try:
        with Index.open(around) as opened:
            real = start.resolve()
            holds = any(real.is_relative_to(source.location(opened.base)) for source in opened.sources)
    except IndexFolderError as error:
        note(f"left alone the index {path_text(str(around))}, which cannot be read: {error.message}")
        holds = False
    if holds:
        note(f"{path_text(str(start))} belongs to the index {path_text(str(around))}, which is updated")
    return around if holds else start / INDEX_FOLDER


def _limits(max_file_size: int) -> ReaderLimits:
    """What one document may cost: a larger text file needs more of everything, a smaller one no less."""
    from likewise.index.readers.base import ReaderLimits

    usual = ReaderLimits()
    share = max(1.0, max_file_size / usual.max_bytes)
    return ReaderLimits(
        max_bytes=max_file_size,
        max_characters=int(usual.max_characters * share),
        seconds=usual.seconds * share,
        memory_bytes=int(usual.memory_bytes * share),
    )


def _chunking(index: Index, chunk_tokens: int | None, overlap: int | None) -> ChunkSettings | None:
    """The settings with what was given changed; None if nothing was."""
    if chunk_tokens is None and overlap is None:
        return None
    current = index.settings
    return replace(
        current,
        target_tokens=current.target_tokens if chunk_tokens is None else chunk_tokens,
        overlap_tokens=current.overlap_tokens if overlap is None else overlap,
    )


def _print_report(report: SyncReport, index: Index, format: Format, *, strict: bool) -> None:
    if format is not Format.TEXT:
        value = report_json(report, index)
        if format is Format.JSON:
            write_json(value)
        else:
            write_jsonl([{"version": 1, "type": "report", **value}])
        return
    write(_summary(report))
    # What is known is not repeated each time, unless it decides how the run ends.
    new = [item for item in report.skipped if strict or not item.known]
    problems = [
        *(f"skipped {path_text(item.key)}: {item.state}, {item.reason}" for item in new),
        *(f"left out {path_text(key)}: {reason}" for key, reason in report.left_out),
        *(
            f"{path_text(key)}: {count_text(count, 'character')} could not be decoded"
            for key, count in report.lossy
        ),
        *(f"{path_text(key)}: {remark}" for key, remark in report.remarks),
    ]
    for problem in problems[:_SHOWN]:
        note(problem)
    if len(problems) > _SHOWN:
        note(f"and {len(problems) - _SHOWN:,} more; likewise status shows them")
    elif len(new) < len(report.skipped):
        note("likewise status shows what was skipped before, and why")
    if any(item.state == "too-large" for item in new):
        note("likewise index --max-file-size SIZE reads larger files")
    if report.truncated:
        warn(f"{count_text(report.truncated, 'passage')} were longer than the encoder takes and were cut")


def _warn_of_coverage(index: Index) -> None:
    """Say so if the encoder was not made for the language of the documents."""
    from likewise.index.coverage import coverage_notice

    coverage = index.coverage
    if coverage is not None and coverage.poor:
        warn(coverage_notice(index.encoder_name, coverage, "this index"))


def _summary(report: SyncReport) -> str:
    """One line that says what was done."""
    changes = [
        f"{count:,} {what}"
        for count, what in (
            (report.added, "added"),
            (report.updated, "updated"),
            (report.renamed, "renamed"),
            (report.deleted, "deleted"),
            (report.unchanged, "unchanged"),
        )
        if count
    ]
    # A run that was stopped early has files and nothing to show for them.
    nothing = "none done yet" if report.found and not report.skipped else "nothing to do"
    if report.skipped:
        states = ", ".join(f"{count:,} {state}" for state, count in sorted(report.skipped_by_state().items()))
        changes.append(f"{len(report.skipped):,} of them skipped ({states})")
    parts = [f"{count_text(report.found, 'file')}: {', '.join(changes) or nothing}"]
    if report.embedded or report.reused:
        parts.append(f"{count_text(report.embedded, 'passage')} embedded, {report.reused:,} reused")
    if report.reembedded:
        parts.append(f"{count_text(report.reembedded, 'passage')} embedded again")
    return "; ".join([*parts, f"{report.seconds:.1f} s"])


def report_json(report: SyncReport, index: Index) -> dict[str, Json]:
    """The shape of `index --json`."""
    return {
        "version": 1,
        "index": str(index.folder),
        "encoder": index.encoder_name,
        "found": report.found,
        "added": report.added,
        "updated": report.updated,
        "renamed": report.renamed,
        "deleted": report.deleted,
        "unchanged": report.unchanged,
        "skipped": [
            {"path": item.key, "state": str(item.state), "reason": item.reason} for item in report.skipped
        ],
        "left_out": [{"path": key, "reason": reason} for key, reason in report.left_out],
        "lossy": [{"path": key, "characters": count} for key, count in report.lossy],
        "remarks": [{"path": key, "remark": remark} for key, remark in report.remarks],
        "passages": report.passages,
        "embedded": report.embedded,
        "reused": report.reused,
        "reembedded": report.reembedded,
        "truncated": report.truncated,
        "published": report.published,
        "seconds": round(report.seconds, 3),
    }
