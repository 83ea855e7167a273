"""likewise: train a text encoder, index a folder, search it by meaning, cite what was found.

Every public name is loaded on first use, so that `import likewise` costs a few milliseconds and imports
neither numpy nor torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from likewise.version import __version__

if TYPE_CHECKING:
    from likewise.embedder.encoder import Encoder
    from likewise.embedder.hash_encoder import HashEncoder
    from likewise.errors import LikewiseError
    from likewise.index.index import Index
    from likewise.retrieval.answer import answer
    from likewise.retrieval.context import pack_context
    from likewise.retrieval.search import Retriever

_HOME = {
    "Encoder": "likewise.embedder.encoder",
    "HashEncoder": "likewise.embedder.hash_encoder",
    "Index": "likewise.index.index",
    "LikewiseError": "likewise.errors",
    "Retriever": "likewise.retrieval.search",
    "answer": "likewise.retrieval.answer",
    "pack_context": "likewise.retrieval.context",
}

__all__ = [
    "Encoder",
    "HashEncoder",
    "Index",
    "LikewiseError",
    "Retriever",
    "__version__",
    "answer",
    "pack_context",
]


def __getattr__(name: str) -> object:
    """Import the home of a public name when it is first used (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
