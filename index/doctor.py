"""Look an index over and say, check by check, what is well, what is not, and what mends it.

The doctor only reads. What it finds wrong with snapshots is never a loss: the catalogue holds every vector.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from likewise.errors import IndexFolderError, LikewiseError
from likewise.index.catalogue import Catalogue
from likewise.index.catalogue_check import (
    count_out_of_lexical_step,
    count_without_vector,
    structural_damage,
)
from likewise.index.catalogue_open import remedy_of_damage
from likewise.index.catalogue_read import EncoderRow, stream_vectors
from likewise.index.coverage import COVERAGE, REMEDY, coverage_notice, stored_coverage
from likewise.index.lock import current_holder
from likewise.index.migrations import FORMAT_VERSION
from likewise.index.records import DocumentState
from likewise.index.snapshot import damage_of, find_orphans, newest, reason_to_publish
from likewise.index.unfinished import UNFINISHED, stored_unfinished, unfinished_state

Severity = Literal["ok", "info", "warning", "error"]

_UPDATE = "likewise index"

# Below this the type of the snapshot loses answers that a person would miss.
_GOOD_RECALL = 0.95


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found.

    Attributes:
        name: Short and stable, for scripts.
        severity: `"ok"`; `"info"` for what is worth knowing; `"warning"` for what makes answers worse or
            slower; `"error"` for what makes them wrong or impossible.
        message: For a person.
        remedy: The command or change that mends it, or "".
    """

    name: str
    severity: Severity
    message: str
    remedy: str = ""


def check(folder: Path) -> list[Check]:
    """Look over the index in a folder; an index that cannot be opened gives one check that says why.

    Args:
        folder: The index folder.

    Example:
        >>> [(found.name, found.severity) for found in check(Path("/no/such/folder"))]
        [('folder', 'error')]
    """
    try:
        with Catalogue.open(folder, mode="read") as catalogue:
            return list(_checks(catalogue, folder))
    except LikewiseError as error:
        return [Check("folder", "error", error.message, error.remedy or "")]


def _checks(catalogue: Catalogue, folder: Path) -> Iterator[Check]:
    yield Check("folder", "ok", f"{folder} is an index of format {FORMAT_VERSION}")
    try:
        with catalogue.reading() as connection:
            damage = structural_damage(connection)
    except IndexFolderError as error:
        damage = [error.message]
    if damage:
        message = f"the catalogue is damaged: {'; '.join(damage)}"
        yield Check("catalogue", "error", message, remedy_of_damage(folder))
        return  # whatever else were found would be a consequence
    yield Check("catalogue", "ok", "the catalogue is sound")
    encoder = catalogue.encoder()
    if encoder is None:
        yield Check("encoder", "info", "no encoder yet: nothing has been indexed", _UPDATE)
    else:
        name = catalogue.meta().get("encoder")
        label = name.get("name") if isinstance(name, dict) else None
        yield Check("encoder", "ok", f"{label or encoder.fingerprint[:12]}, {encoder.dimension} dimensions")
        with catalogue.reading() as connection:
            yield _vectors(connection, encoder)
        yield from _coverage(catalogue, encoder, str(label or "of this index"))
        yield _snapshot(catalogue, folder, encoder)
        yield _tail(catalogue, folder)
    yield _complete(catalogue, folder)
    with catalogue.reading() as connection:
        yield _lexical(catalogue, connection)
    yield _files(catalogue, folder)
    yield _writer(folder)
    yield _room(catalogue, folder)
    yield _documents(catalogue)


def _vectors(connection: sqlite3.Connection, encoder: EncoderRow) -> Check:
    remedy = f"run {_UPDATE} in a new index folder, then delete this one"
    missing = count_without_vector(connection, encoder)
    if missing:
        return Check("vectors", "error", f"{missing} passages have no usable vector", remedy)
    total = wrong = 0
    for ids, vectors in stream_vectors(connection, encoder):
        total += len(ids)
        norms = np.linalg.norm(vectors, axis=1)
        wrong += int((~(np.abs(norms - 1) <= 1e-2)).sum())  # also counts NaN
    if wrong:
        return Check("vectors", "error", f"{wrong} of {total} vectors are not of length 1", remedy)
    return Check("vectors", "ok", f"{total} passages, each with its vector")


def _coverage(catalogue: Catalogue, encoder: EncoderRow, name: str) -> Iterator[Check]:
    found = stored_coverage(catalogue.meta().get(COVERAGE), encoder.fingerprint)
    if found is None:
        return  # measured with the first passages
    if found.poor:
        yield Check("coverage", "warning", coverage_notice(name, found, "this index"), REMEDY)
    else:
        yield Check("coverage", "ok", f"the encoder's vocabulary covers {found.value:.0%} of the text")


def _snapshot(catalogue: Catalogue, folder: Path, encoder: EncoderRow) -> Check:
    row = newest(catalogue.snapshots(), encoder)
    if row is None:
        if not catalogue.counts().passages:
            return Check("snapshot", "ok", "no snapshot, and no passages that it could hold")
        return Check("snapshot", "info", "no snapshot: searches read all vectors from the catalogue", _UPDATE)
    damage = damage_of(folder, row)
    if damage:
        return Check("snapshot", "warning", f"{damage}; searches make it again from the catalogue", _UPDATE)
    message = f"{row.count} vectors, {row.spec}, recall@10 {row.recall:.3f} against exact search"
    if row.recall < _GOOD_RECALL:
        return Check("snapshot", "warning", message, "publish with the exact type IDMap2,Flat")
    if row.count and not catalogue.has_background(row):
        return Check("snapshot", "info", f"{message}; the distribution of its vectors is not known", _UPDATE)
    return Check("snapshot", "ok", message)


def _tail(catalogue: Catalogue, folder: Path) -> Check:
    counts = catalogue.counts()
    if not counts.added + counts.removed:
        return Check("tail", "ok", "nothing was added or removed since the snapshot")
    message = f"{counts.added} passages added and {counts.removed} removed since the snapshot"
    due = reason_to_publish(catalogue, folder)
    return Check("tail", "info", message, _UPDATE) if due else Check("tail", "ok", message)


def _complete(catalogue: Catalogue, folder: Path) -> Check:
    state, command = unfinished_state(folder, stored_unfinished(catalogue.meta().get(UNFINISHED)))
    if state:
        return Check("complete", "warning", f"documents may be missing: {state}", command)
    return Check("complete", "ok", "everything was read to the end")


def _lexical(catalogue: Catalogue, connection: sqlite3.Connection) -> Check:
    different = count_out_of_lexical_step(connection)
    if different:
        remedy = f"run {_UPDATE} in a new index folder, then delete this one"
        return Check("lexical", "error", f"{different} passages are out of step with the word index", remedy)
    if not catalogue.lexical_is_current():
        return Check("lexical", "warning", "the word index was made by another analyser version", _UPDATE)
    return Check("lexical", "ok", "the word index is in step")


def _files(catalogue: Catalogue, folder: Path) -> Check:
    orphans = find_orphans(folder, (row.file for row in catalogue.snapshots()))
    if not orphans:
        return Check("files", "ok", "no files left behind")
    size = sum((folder / name).stat().st_size for name in orphans if (folder / name).exists())
    message = f"{len(orphans)} vector files left behind by an interrupted run ({size / 1e6:.1f} MB)"
    return Check("files", "info", message, "the next publication removes them")


def _writer(folder: Path) -> Check:
    holder = current_holder(folder)
    if holder is not None:
        return Check("writer", "info", f"being written by {holder}")
    if not os.access(folder, os.W_OK):
        return Check("writer", "info", "the folder may be read but not written")
    return Check("writer", "ok", "nobody is writing")


def _room(catalogue: Catalogue, folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    # The next snapshot is written beside the present ones.
    needed = 2 * max((row.bytes for row in catalogue.snapshots()), default=0) + (16 << 20)
    message = f"{free / 1e9:.1f} GB free on the disk of the index"
    if free < needed:
        return Check("room", "warning", message, f"free at least {needed / 1e9:.1f} GB")
    return Check("room", "ok", message)


def _documents(catalogue: Catalogue) -> Check:
    counts = catalogue.counts()
    failed = counts.states.get(DocumentState.FAILED, 0)
    states = ", ".join(f"{number} {state}" for state, number in sorted(counts.states.items()))
    message = f"{counts.documents} documents ({states})" if states else "no documents"
    if failed:
        return Check("documents", "warning", message, "likewise status shows which failed, and why")
    return Check("documents", "ok", message)
