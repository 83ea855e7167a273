"""The plain rows that go into the catalogue and come out of it.

Nothing here opens a database: these are the words in which sync, views and the doctor speak about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from likewise.index.records import DocumentState, Json, Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Ranking(NamedTuple):
    """Passages in order of relevance.

    Attributes:
        ids: int64 of shape (n,), passage ids, best first; equal scores in ascending order of id.
        scores: float32 of shape (n,), higher is better.
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A passage on its way into the catalogue.

    Attributes:
        passage: The passage itself.
        text_hash: Digest of the text that was embedded, context included: equal digests, equal vectors.
        vector: float32 of shape (dimension,), of unit length; None if the catalogue already holds a vector
            for this `text_hash` (see `Catalogue.known_vectors`), which is then used again.
    """

    passage: Passage
    text_hash: bytes
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class WriteDocument:
    """Put a document in place of whatever stood under its key.

    A passage with the same digest and text as before keeps its id and its vector; every other one gets an id
    that was never used. A document in any state but `ok` has no passages: what it said before is forgotten.

    Attributes:
        key: The document's path as users see it.
        path_bytes: The same path as the file system spells it (`os.fsencode`).
        size: In bytes, when it was read.
        mtime_ns: Modification time in nanoseconds since the epoch, when it was read.
        content_hash: SHA-256 of the bytes that were read, hexadecimal; "" if they were not.
        state: How reading it ended.
        reason: Why, for a person; "" if all went well.
        reader, title, language, encoding, lossy, notes, metadata: See `Extraction`.
        passages: In text order.
    """

    key: str
    path_bytes: bytes
    size: int
    mtime_ns: int
    content_hash: str
    state: DocumentState = DocumentState.OK
    reason: str = ""
    reader: str = ""
    title: str = ""
    language: str = ""
    encoding: str = ""
    lossy: int = 0
    notes: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    passages: Sequence[PassageRow] = ()


@dataclass(frozen=True, slots=True)
class DeleteDocument:
    """Forget a document and its passages. A key that does not exist is no error."""

    key: str


@dataclass(frozen=True, slots=True)
class RenameDocument:
    """Give a document another key; passages, ids and vectors stay.

    A document that stands under `new_key` is replaced, as a file is by renaming over it. Changes are applied
    in order, so exchanging two names takes a third.
    """

    key: str
    new_key: str
    path_bytes: bytes
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class TouchDocument:
    """Note a new modification time of a document whose content is the same."""

    key: str
    size: int
    mtime_ns: int


Change: TypeAlias = "WriteDocument | DeleteDocument | RenameDocument | TouchDocument"


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document as the catalogue holds it; see `WriteDocument` for the fields.

    Attributes:
        passages: How many passages it has.
    """

    key: str
    path_bytes: bytes
    size: int
    mtime_ns: int
    content_hash: str
    state: DocumentState
    reason: str
    reader: str
    title: str
    language: str
    encoding: str
    lossy: int
    notes: tuple[str, ...]
    metadata: Mapping[str, Json]
    passages: int


@dataclass(frozen=True, slots=True)
class CatalogueCounts:
    """How much the catalogue holds.

    Attributes:
        documents: All of them, in whatever state.
        states: Documents by state; states without documents are left out.
        passages: Passages that can be found.
        added: Passages added since the last snapshot was taken.
        removed: Passages removed since then.
    """

    documents: int
    states: Mapping[DocumentState, int]
    passages: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """What the catalogue knows of a published vector file.

    Attributes:
        generation: Grows with every publication; 0 before it is recorded.
        file: Name of the file inside the index folder.
        through: Last operation of the log that the file includes.
        count: Vectors in it.
        dimension: Length of a vector.
        bytes: Size of the file.
        sha256: Digest of the file, hexadecimal.
        spec: FAISS factory string, such as `"IDMap2,Flat"`.
        faiss_version: Version of FAISS that wrote it.
        fingerprint: Encoder that the vectors come from.
        recall: Recall@10 against exact search, measured when it was published; 1.0 for exact types.
        created: Seconds since the epoch.
    """

    generation: int
    file: str
    through: int
    count: int
    dimension: int
    bytes: int
    sha256: str
    spec: str
    faiss_version: str
    fingerprint: str
    recall: float
    created: float


@dataclass(frozen=True, slots=True, eq=False)
class BackgroundRow:
    """How the vectors of a snapshot are distributed; see `background.Background`.

    Attributes:
        count: Vectors that it was computed from.
        mean: float32 of shape (dimension,).
        covariance: float32 of shape (dimension, dimension).
    """

    count: int
    mean: NDArray[np.float32]
    covariance: NDArray[np.float32]
