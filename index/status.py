"""What an index holds and what it leaves out, gathered for people and programs. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from likewise.index.catalogue import Catalogue
from likewise.index.coverage import COVERAGE, Coverage, stored_coverage
from likewise.index.lock import Holder, current_holder
from likewise.index.records import DocumentState
from likewise.index.report import SkippedDocument
from likewise.index.rows import CatalogueCounts, SnapshotRow
from likewise.index.settings import ChunkSettings
from likewise.index.sources import Source
from likewise.index.stored import stored_chunking, stored_encoder, stored_notes, stored_sources, synced_at
from likewise.index.unfinished import UNFINISHED, stored_unfinished


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What an index holds and what it leaves out.

    Attributes:
        folder: The index folder.
        base: The folder that document keys are relative to.
        encoder_name: Encoder whose vectors answer, "" before the first passage.
        fingerprint: Of that encoder, "" before the first passage.
        dimension: Length of its vectors, 0 before the first passage.
        counts: Documents and passages, and changes since the last snapshot.
        sources: What the index is made from.
        chunking: How documents are cut.
        snapshot: The vector snapshot in use, or None while the catalogue answers alone.
        skipped: Documents without passages, and why.
        lossy: Documents with characters that could not be decoded, and how many.
        left_out: What the last scans left out for a reason a person should know, and that reason.
        languages: Documents with text, by language.
        bytes: Size of the index folder.
        synced_at: When a sync last changed something, seconds since the epoch.
        writer: Who is writing at this moment.
        coverage: How well the encoder's vocabulary covers the passages; None before it was measured.
        unfinished: Sources, or paths in them, that a sync began to read and did not finish.
    """

    folder: Path
    base: Path
    encoder_name: str
    fingerprint: str
    dimension: int
    counts: CatalogueCounts
    sources: tuple[Source, ...]
    chunking: ChunkSettings
    snapshot: SnapshotRow | None
    skipped: tuple[SkippedDocument, ...]
    lossy: tuple[tuple[str, int], ...]
    left_out: tuple[tuple[str, str], ...]
    languages: Mapping[str, int]
    bytes: int
    synced_at: float | None
    writer: Holder | None
    coverage: Coverage | None
    unfinished: tuple[str, ...]


def read_status(folder: Path, base: Path) -> IndexStatus:
    """The status of the index in a folder.

    Raises:
        IndexNotFound: There is no index.
        IndexFolderError: It cannot be read.
    """
    skipped: list[SkippedDocument] = []
    lossy: list[tuple[str, int]] = []
    languages: dict[str, int] = {}
    with Catalogue.open(folder, mode="read") as catalogue:
        meta = catalogue.meta()
        encoder = catalogue.encoder()
        snapshots = catalogue.snapshots()
        counts = catalogue.counts()
        for row in catalogue.documents():
            if row.state is not DocumentState.OK:
                skipped.append(SkippedDocument(row.key, row.state, row.reason))
                continue
            languages[row.language] = languages.get(row.language, 0) + 1
            if row.lossy:
                lossy.append((row.key, row.lossy))
    in_use = (row for row in snapshots if encoder is not None and row.fingerprint == encoder.fingerprint)
    return IndexStatus(
        folder=folder,
        base=base,
        encoder_name=str(stored_encoder(meta).get("name", "")),
        fingerprint=encoder.fingerprint if encoder else "",
        dimension=encoder.dimension if encoder else 0,
        counts=counts,
        sources=tuple(stored_sources(meta)),
        chunking=stored_chunking(meta) or ChunkSettings(),
        snapshot=next(in_use, None),
        skipped=tuple(skipped),
        lossy=tuple(lossy),
        left_out=tuple(stored_notes(meta)),
        languages=dict(sorted(languages.items())),
        bytes=_size_of(folder),
        synced_at=synced_at(meta),
        writer=current_holder(folder),
        coverage=stored_coverage(meta.get(COVERAGE), encoder.fingerprint) if encoder else None,
        unfinished=stored_unfinished(meta.get(UNFINISHED)),
    )


def _size_of(folder: Path) -> int:
    total = 0
    for path in folder.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue  # a snapshot that was just replaced
    return total
