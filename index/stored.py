"""The settings that a sync keeps in the catalogue, by name and form.

One place for the keys of `Catalogue.meta` that describe sources, encoder and cutting, so that whoever writes
and whoever reads them agree. Opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from likewise.index.records import Json
from likewise.index.settings import ChunkSettings
from likewise.index.sources import Source

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder

SOURCES, ENCODER, CHUNKING = "sources", "encoder", "chunking"
LEFT_OUT, SYNCED_AT = "left_out", "synced_at"

Meta = Mapping[str, Json]

CHUNKER_VERSION = "1"
"""Raise when the same text would be cut differently: documents are then cut again."""

OUTDATED = "outdated"
"""Stands for the version when stored passages are too long for a new encoder."""


def stored_sources(meta: Meta) -> list[Source]:
    """What the index is made from."""
    found = meta.get(SOURCES)
    return [Source.from_json(value) for value in found] if isinstance(found, list) else []


def sources_json(sources: Iterable[Source]) -> list[Json]:
    """The form that `stored_sources` reads."""
    return [source.to_json() for source in sources]


def stored_encoder(meta: Meta) -> Mapping[str, Json]:
    """Name, fingerprint, dimension and passage length of the encoder, empty before the first passage."""
    found = meta.get(ENCODER)
    return found if isinstance(found, dict) else {}


def encoder_json(encoder: TextEncoder, name: str) -> dict[str, Json]:
    """The form that `stored_encoder` reads."""
    return {
        "name": name,
        "fingerprint": encoder.fingerprint,
        "dimension": encoder.dimension,
        "passage_tokens": encoder.passage_tokens,
    }


def stored_chunking(meta: Meta) -> ChunkSettings | None:
    """How documents were cut, or None for an index without any."""
    value = meta.get(CHUNKING)
    settings = value.get("settings") if isinstance(value, dict) else None
    return ChunkSettings.from_json(settings) if isinstance(settings, dict) else None


def chunking_json(chunking: ChunkSettings, version: str = CHUNKER_VERSION) -> dict[str, Json]:
    """The form that `stored_chunking` reads."""
    return {"version": version, "settings": chunking.to_json()}


def chunking_changed(meta: Meta, chunking: ChunkSettings) -> bool:
    """Whether stored documents must be cut again."""
    return CHUNKING in meta and meta[CHUNKING] != chunking_json(chunking)


def stored_notes(meta: Meta) -> list[tuple[str, str]]:
    """Keys that the last scans left out, and why."""
    notes = meta.get(LEFT_OUT)
    if not isinstance(notes, list):
        return []
    return [(str(note[0]), str(note[1])) for note in notes if isinstance(note, list)]


def synced_at(meta: Meta) -> float | None:
    """When a sync last changed something, seconds since the epoch."""
    found = meta.get(SYNCED_AT)
    return float(found) if isinstance(found, (int, float)) else None
