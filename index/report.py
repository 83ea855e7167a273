"""What a sync says about itself: events while it runs, a report when it ends or is interrupted.

Plain values; nothing here does any of the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from likewise.index.records import DocumentState

Phase = Literal["scan", "compare", "index", "reembed", "publish"]


@dataclass(frozen=True, slots=True)
class SyncEvent:
    """How far a sync has come.

    Attributes:
        phase: "scan" finds files, "compare" looks which have changed, "index" reads and embeds them,
            "reembed" embeds stored passages with another encoder, "publish" writes the vector snapshot.
        done: Files (for "reembed" and "publish": passages) that are done in this phase.
        total: How many there will be, or None while that is not known.
        path: Key of the document in hand, or "".
        embedded: Passages embedded so far in this run.
        to_embed: Passages found so far in this run that are new, the embedded ones included.
    """

    phase: Phase
    done: int
    total: int | None = None
    path: str = ""
    embedded: int = 0
    to_embed: int = 0


Listener: TypeAlias = "Callable[[SyncEvent], None]"


@dataclass(frozen=True, slots=True)
class SkippedDocument:
    """A document that gives no passages, and why.

    Attributes:
        key: Its key.
        state: How reading it ended.
        reason: One sentence for a person.
        known: Whether an earlier sync found that out, and nothing has changed.
    """

    key: str
    state: DocumentState
    reason: str
    known: bool = False


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync did. Everything that it counts has been committed.

    Attributes:
        found: Files that the sources hold.
        added: Documents that were not there before.
        updated: Documents whose content, reader or passages changed.
        renamed: Documents that only moved; nothing was read or embedded for them.
        deleted: Documents that are gone from the sources.
        unchanged: Documents that stayed as they were.
        skipped: Documents in the sources that give no passages, whenever that was found out.
        lossy: Documents of this run with characters that could not be decoded, and how many.
        remarks: What readers remarked about documents of this run.
        left_out: What the scan left out for a reason a person should know (links, FIFOs, folders without
            permission), and why.
        passages: Passages of the documents added or updated.
        embedded: Passages for which a vector was computed.
        reused: Passages whose vector was already known.
        truncated: Passages that were longer than the encoder takes; 0 unless an encoder miscounts.
        reembedded: Stored passages that were embedded again with another encoder.
        published: Whether a new vector snapshot was written.
        seconds: Wall-clock time.
    """

    found: int = 0
    added: int = 0
    updated: int = 0
    renamed: int = 0
    deleted: int = 0
    unchanged: int = 0
    skipped: tuple[SkippedDocument, ...] = ()
    lossy: tuple[tuple[str, int], ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    passages: int = 0
    embedded: int = 0
    reused: int = 0
    truncated: int = 0
    reembedded: int = 0
    published: bool = False
    seconds: float = 0.0

    @property
    def changed(self) -> int:
        """Documents that differ from before the sync."""
        return self.added + self.updated + self.renamed + self.deleted

    def skipped_by_state(self) -> dict[DocumentState, int]:
        """Number of skipped documents in each state that occurs.

        Example:
            >>> scanned = SkippedDocument("a.pdf", DocumentState.NEEDS_OCR, "has no text")
            >>> SyncReport(skipped=(scanned,)).skipped_by_state()
            {<DocumentState.NEEDS_OCR: 'needs-ocr'>: 1}
        """
        counts: dict[DocumentState, int] = {}
        for document in self.skipped:
            counts[document.state] = counts.get(document.state, 0) + 1
        return counts


class SyncInterrupted(KeyboardInterrupt):
    """Ctrl-C during a sync: the index is valid, and `report` says what was saved.

    Attributes:
        report: What was committed before.
    """

    def __init__(self, report: SyncReport) -> None:
        super().__init__("interrupted; everything reported is saved")
        self.report = report


@dataclass(slots=True)
class Tally:
    """A report in the making."""

    found: int = 0
    added: int = 0
    updated: int = 0
    renamed: int = 0
    deleted: int = 0
    unchanged: int = 0
    passages: int = 0
    embedded: int = 0
    truncated: int = 0
    published: bool = False
    skipped: dict[str, SkippedDocument] = field(default_factory=dict)
    lossy: list[tuple[str, int]] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def skip(self, documents: Iterable[SkippedDocument]) -> None:
        """Note documents without passages."""
        for document in documents:
            self.skipped[document.key] = document

    def report(self) -> SyncReport:
        """The report as of now."""
        return SyncReport(
            found=self.found,
            added=self.added,
            updated=self.updated,
            renamed=self.renamed,
            deleted=self.deleted,
            unchanged=self.unchanged,
            skipped=tuple(self.skipped[key] for key in sorted(self.skipped)),
            lossy=tuple(self.lossy),
            remarks=tuple(self.remarks),
            left_out=tuple(self.left_out),
            passages=self.passages,
            embedded=self.embedded,
            reused=self.passages - self.embedded,
            truncated=self.truncated,
            published=self.published,
            seconds=time.monotonic() - self.started,
        )
