"""A copy of an index that does not hold the questions which its documents were asked to ask.

Only the passages asked about are written and embedded anew; everything else is the index as it is. The index
itself is never touched. One copy serves all questions, so a passage without its sentence is also what the
other questions have to tell apart from their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from likewise.index.catalogue import Catalogue
from likewise.index.chunker import context_lines
from likewise.index.index import Index
from likewise.index.ingest import text_digest
from likewise.index.lock import WriterLock
from likewise.index.rows import DocumentRow, PassageRow, WriteDocument
from likewise.index.scratch import scratch_copy
from likewise.index.snapshot import publish
from likewise.retrieval.evaluation.self_questions import (
    KINDS,
    Kind,
    SelfQuestion,
    bare,
    make_questions,
    without,
    without_line,
)

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder
    from likewise.index.records import Passage
    from likewise.index.settings import ChunkSettings
    from likewise.index.view import IndexView

_BATCH = 256  # texts embedded at a time


@dataclass(frozen=True)
class SelfTest:
    """Questions with the index that they are fair for.

    Attributes:
        index: The copy; gone after the `with` block that made it.
        questions: What was chosen.
        rewritten: Passages that differ from those of the original.
    """

    index: Index
    questions: tuple[SelfQuestion, ...]
    rewritten: int


@contextmanager
def self_test(
    index: Index,
    *,
    count: int = 200,
    seed: int = 0,
    kinds: Sequence[Kind] = KINDS,
    about: Container[str] | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Iterator[SelfTest]:
    """Questions from an index, and a copy of it that lacks them, for the length of a `with` block.

    Args:
        index: Any index; it is only read.
        count: How many questions are wanted.
        seed: Equal seeds choose equal questions from equal indexes.
        kinds: What to make questions from.
        about: Keys of the documents to ask about; None for all.
        progress: Told what is being done, how much of it, and out of how many where that is known.

    Raises:
        DataError: No question can be made.
        IndexNotFound: There is no index.
        IndexFolderError: The index cannot be read, or there is no space for the copy.
        EncoderError: The encoder of the index cannot be loaded.
    """

    def report(phase: str, done: int, total: int | None = None) -> None:
        if progress:
            progress(phase, done, total)

    with scratch_copy(index.folder) as folder:
        with Index.open(folder) as copy, copy.view() as view:
            questions = make_questions(
                view,
                count=count,
                seed=seed,
                kinds=kinds,
                about=about,
                progress=lambda n: report("choosing", n),
            )
            encoder = index.encoder
            documents = _masked_documents(view, questions, encoder, copy.settings)
        with WriterLock(folder), Catalogue.open(folder, mode="write") as catalogue:
            rewritten = _embed(catalogue, documents, encoder, report)
            catalogue.apply([document.header for document in documents])
            publish(catalogue, folder)
        with Index.open(folder, encoder=encoder) as copy:
            yield SelfTest(copy, tuple(questions), rewritten)


@dataclass
class _Masked:
    """A document on its way into the copy: its rows still lack vectors, `texts` is what to embed for them."""

    header: WriteDocument
    texts: list[str]


def _masked_documents(
    view: IndexView, questions: Sequence[SelfQuestion], encoder: TextEncoder, settings: ChunkSettings
) -> list[_Masked]:
    by_document: dict[str, list[SelfQuestion]] = {}
    for question in questions:
        by_document.setdefault(question.key, []).append(question)
    rows = {row.key: row for row in view.documents() if row.key in by_document}
    masked = []
    for key, asked in by_document.items():
        row = rows[key]
        titled = any(question.kind == "title" for question in asked)
        title = "" if titled else row.title
        line = context_lines(title, encoder, settings)
        kept: list[tuple[Passage, str]] = []
        for stored in view.document_passages(key):
            passage = stored.passage
            for question in asked:
                if stored.id in question.passages:
                    passage = _masked(passage, question)
            if passage.text:  # what said nothing but the title is gone with it
                kept.append((passage, line.compose(passage.headings, passage.text)))
        passages = [PassageRow(passage, text_digest(text)) for passage, text in kept]
        masked.append(_Masked(_header(row, title, passages), [text for _, text in kept]))
    return masked


def _masked(passage: Passage, question: SelfQuestion) -> Passage:
    if question.kind == "sentence":
        return replace(passage, text=without(passage.text, question.original))
    title = bare(question.text)
    headings = tuple(heading for heading in passage.headings if bare(heading) != title)
    return replace(passage, text=without_line(passage.text, question.text), headings=headings)


def _header(row: DocumentRow, title: str, passages: Sequence[PassageRow]) -> WriteDocument:
    return WriteDocument(
        key=row.key,
        path_bytes=row.path_bytes,
        size=row.size,
        mtime_ns=row.mtime_ns,
        content_hash=row.content_hash,
        state=row.state,
        reason=row.reason,
        reader=row.reader,
        title=title,
        language=row.language,
        encoding=row.encoding,
        lossy=row.lossy,
        notes=row.notes,
        metadata=row.metadata,
        passages=passages,
    )


def _embed(
    catalogue: Catalogue,
    documents: Sequence[_Masked],
    encoder: TextEncoder,
    report: Callable[[str, int, int | None], None],
) -> int:
    """Give the rows their vectors: known ones where the text is the same as before; returns how many not."""
    digests = [row.text_hash for document in documents for row in document.header.passages]
    texts = [text for document in documents for text in document.texts]
    vectors = catalogue.known_vectors(digests, encoder.fingerprint)
    new = {d: text for d, text in zip(digests, texts, strict=True) if d not in vectors}
    order = sorted(new, key=lambda digest: len(new[digest]))
    for start in range(0, len(order), _BATCH):
        piece = order[start : start + _BATCH]
        embedded = encoder.encode_passages([new[digest] for digest in piece])
        vectors.update(zip(piece, embedded, strict=True))
        report("embedding", start + len(piece), len(order))
    for document in documents:
        rows = [replace(row, vector=vectors[row.text_hash]) for row in document.header.passages]
        document.header = replace(document.header, passages=rows)
    return len(new)
