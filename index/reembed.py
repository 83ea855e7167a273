"""Embed all stored passages with another encoder, then let it answer: all at once, or not at all.

The new vectors are kept beside the old ones, which answer until the last passage is done, so a run may be
interrupted and continued at any time. Passages keep their ids and texts; nothing is read from the sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from likewise.index.catalogue import Catalogue
from likewise.index.chunker import context_lines
from likewise.index.context_lines import ContextLines
from likewise.index.coverage import update_coverage
from likewise.index.records import StoredPassage
from likewise.index.settings import ChunkSettings
from likewise.index.stored import encoder_json

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder

_GROUP = 256


def reembed(
    catalogue: Catalogue,
    encoder: TextEncoder,
    *,
    name: str,
    chunking: ChunkSettings,
    on_truncated: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Give every passage a vector of another encoder and switch to it.

    Args:
        catalogue: Open for writing, under the folder's `WriterLock`.
        encoder: The encoder that shall answer.
        name: The name to remember it by.
        chunking: How the passages were cut; says whether they are embedded with their context line.
        on_truncated: Called when a passage turns out to be longer than the encoder takes, before the switch.
        progress: Called with the passages embedded in this run, and all there are.

    """
    total = catalogue.counts().passages
    embedded = 0
    progress(0, total)
    while passages := catalogue.passages_to_embed(encoder.fingerprint, encoder.dimension, limit=_GROUP):
        vectors, truncated = encoder.embed(_texts(passages, encoder, chunking), role="passage")
        if truncated:
            on_truncated()
        ids = [passage.id for passage in passages]
        catalogue.add_vectors(encoder.fingerprint, dict(zip(ids, vectors, strict=True)))
        embedded += len(passages)
        progress(embedded, total)
    catalogue.switch_encoder(encoder_json(encoder, name))
    update_coverage(catalogue, encoder)


def _texts(passages: Sequence[StoredPassage], encoder: TextEncoder, chunking: ChunkSettings) -> list[str]:
    """What is embedded for each passage: the same text that cutting its document would give."""
    # The length that was asked for may be more than this encoder takes; the lines only need a bound.
    fitting = ChunkSettings(heading_context=chunking.heading_context)
    lines: dict[str, ContextLines] = {}
    texts = []
    for stored in passages:
        title = stored.title
        if title not in lines:
            lines[title] = context_lines(title, encoder, fitting)
        texts.append(lines[title].compose(stored.passage.headings, stored.passage.text))
    return texts
