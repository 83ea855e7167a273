"""Metadata at the head of a text file: YAML between `---` lines, TOML between `+++` lines.

Values become plain JSON. YAML is loaded with the safe loader and bounded: its aliases can make a few hundred
bytes stand for gigabytes once they are written out.
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass, field

from likewise.index.records import Json

_BLOCK = re.compile(
    r"(?:---[ \t]*\r?\n(?P<yaml>.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)"
    r"|\+\+\+[ \t]*\r?\n(?P<toml>.*?)^\+\+\+[ \t]*(?:\r?\n|\Z))",
    re.M | re.S,
)
_MAX_CHARACTERS = 64 << 10
_MAX_VALUES = 10_000
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What the head of a file says.

    Attributes:
        end: Offset at which the document proper begins; 0 without front matter.
        metadata: The values, JSON only.
        note: Why the block could not be understood, or "".
    """

    end: int = 0
    metadata: dict[str, Json] = field(default_factory=dict)
    note: str = ""

    def text(self, *names: str) -> str:
        """The first of these values that is a text or number, as text; names are compared without case."""
        lowered = {name.lower(): value for name, value in self.metadata.items()}
        for name in names:
            value = lowered.get(name)
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                return str(value)
        return ""


def split(text: str) -> FrontMatter:
    r"""The front matter of a text.

    Example:
        >>> front = split("---\ntitle: Keys\ndate: 2025-01-31\n---\nRotate them.")
        >>> front.metadata, front.end
        ({'title': 'Keys', 'date': '2025-01-31'}, 37)
    """
    match = _BLOCK.match(text, 0, _MAX_CHARACTERS)
    if match is None:
        return FrontMatter()
    try:
        loaded = _load_toml(match["toml"]) if match["yaml"] is None else _load_yaml(match["yaml"])
        value = to_json(loaded)
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        return FrontMatter(match.end(), {}, f"the front matter cannot be understood: {reason}")
    if not isinstance(value, dict):
        # A text that merely begins with a rule has no front matter.
        return FrontMatter(match.end() if value is None else 0)
    return FrontMatter(match.end(), value)


def _load_yaml(text: str) -> object:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        loaded: object = yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    return loaded


def _load_toml(text: str) -> object:
    import tomllib

    return tomllib.loads(text)


def to_json(value: object) -> Json:
    """A value of plain JSON types: dates as ISO 8601, keys as text, anything else as its text.

    Raises:
        ValueError: It is nested too deeply or has too many values, counting repeated ones every time.

    Example:
        >>> to_json({1: {"a", }, "d": datetime.date(2025, 1, 31)})
        {'1': ['a'], 'd': '2025-01-31'}
    """
    budget = _MAX_VALUES

    def convert(value: object, depth: int) -> Json:
        nonlocal budget
        budget -= 1
        if budget < 0:
            raise ValueError(f"it holds more than {_MAX_VALUES:,} values")
        if depth > _MAX_DEPTH:
            raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int):
            # SQLite and most readers of JSON have 64 bits.
            return value if -(2**63) <= value < 2**63 else _digits(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if isinstance(value, datetime.date | datetime.time):
            return value.isoformat()
        if isinstance(value, dict):
            return {str(key): convert(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [convert(item, depth + 1) for item in value]
        return str(value)

    return convert(value, 0)


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to write out integers of thousands of digits
        return hex(value)
