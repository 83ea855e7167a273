"""What a sync has begun and not finished, kept in the catalogue so that nobody takes part for the whole.

A path is noted before the first of its documents is read, and struck out when all of them are stored. Ctrl-C,
a failure and a killed process therefore leave it noted, and an index that notes nothing is complete. Nothing
here writes: `sync` stores the note, views and `status` speak of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from likewise.index.lock import current_holder
from likewise.index.records import Json
from likewise.index.sources import Job, Source
from likewise.index.stored import Meta

UNFINISHED = "unfinished"
"""The setting of the catalogue: paths as in `Source.path`."""


def stored_unfinished(value: Json) -> tuple[str, ...]:
    """The paths that were begun and not finished, out of the setting `UNFINISHED`."""
    return tuple(str(path) for path in value) if isinstance(value, list) else ()


def with_begun(meta: Meta, jobs: Iterable[Job], base: Path) -> list[Json]:
    """The setting once a sync has begun these walks.

    Example:
        >>> with_begun({UNFINISHED: ["notes"]}, [Job(Source("docs"))], Path("/home/ann"))
        ['docs', 'notes']
    """
    begun = {Source.at(job.root(base), base).path for job in jobs}
    return [*sorted(begun.union(stored_unfinished(meta.get(UNFINISHED))))]


def without_finished(meta: Meta, jobs: Iterable[Job], base: Path) -> list[Json]:
    """The setting once a sync has finished these walks: what lies elsewhere stays unfinished.

    Example:
        >>> meta = {UNFINISHED: ["docs", "docs/old", "notes"]}
        >>> without_finished(meta, [Job(Source("docs"))], Path("/home/ann"))
        ['notes']
    """
    roots = [job.root(base) for job in jobs]
    return [
        path
        for path in stored_unfinished(meta.get(UNFINISHED))
        if not any(Source(path).location(base).is_relative_to(root) for root in roots)
    ]


def unfinished_notice(folder: Path, unfinished: Sequence[str]) -> str:
    """One sentence for a person about an index that lacks documents, or "" for one that is whole.

    Args:
        folder: The index folder.
        unfinished: From `stored_unfinished`.
    """
    state, command = unfinished_state(folder, unfinished)
    then = f"; {command} goes on from there" if command else ""
    return f"the index is incomplete: {state}{then}" if state else ""


def unfinished_state(folder: Path, unfinished: Sequence[str]) -> tuple[str, str]:
    """What has become of a sync that did not finish, and the command that goes on from there.

    The command is "" while the sync is at work, and both are for an index that is whole.
    """
    if not unfinished:
        return "", ""
    paths = ", ".join(folder.parent.name if path == "." else path for path in unfinished)
    holder = current_holder(folder)
    if holder is not None:
        return f"{holder} is still reading {paths}", ""
    return f"reading {paths} was stopped before the end", update_command(folder)


def update_command(folder: Path) -> str:
    """The command that brings an index up to date, as it must be typed in the working directory."""
    from likewise.errors import IndexNotFound
    from likewise.index.index import Index

    try:
        if os.path.realpath(Index.find()) == os.path.realpath(folder):
            return "likewise index"
    except IndexNotFound:
        pass
    # Double quotes, which every shell takes.
    return f'likewise index --index "{folder}"' if " " in str(folder) else f"likewise index --index {folder}"
