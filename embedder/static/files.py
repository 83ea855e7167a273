"""What the files of a static model say without its weights being read: length of a vector, token limit."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from likewise.embedder.cache import read_json

if TYPE_CHECKING:
    from likewise.embedder.spec import JsonObject

TOKENIZER_FILE = "tokenizer.json"
WEIGHTS_FILE = "model.safetensors"
# A header of this size would describe tens of thousands of arrays.
_LONGEST_HEADER = 1 << 20


def table_width(folder: Path) -> int:
    """Length of the token vectors, from the header of their file; 0 where that does not tell."""
    try:
        with (folder / WEIGHTS_FILE).open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(size, _LONGEST_HEADER)))
        entry = header.get("embedding.weight") or header["embeddings"]
        return int(entry["shape"][1])
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error):
        return 0


def token_limit(folder: Path) -> int | None:
    """Tokens after which the tokenizer cuts a text; None if it does not."""
    found = _truncation(folder)
    return int(found["max_length"]) if found else None


def truncation_side(folder: Path) -> Literal["left", "right"]:
    """Where a text that is too long is cut."""
    return "left" if str(_truncation(folder).get("direction", "")).lower() == "left" else "right"


def _truncation(folder: Path) -> JsonObject:
    found = read_json(folder / TOKENIZER_FILE).get("truncation")
    return found if isinstance(found, dict) else {}
