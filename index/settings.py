"""What a person may choose about an index, as frozen values that refuse what they do not know.

A typo in a setting must fail where it is made, not be ignored: unknown keys, wrong types and numbers out of
range all raise. Settings that change passages are stored in the catalogue; those that only change how fast
or how often things are written are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple

from likewise.errors import UsageError
from likewise.index.records import Json

MIN_TARGET_TOKENS = 16
MAX_TARGET_TOKENS = 8192

# A passage is the unit that is found, cited and put into a prompt. Encoders blur what is longer than a few
# paragraphs even where they accept it, so a long-context model does not get longer passages by itself.
DEFAULT_TARGET_SHARE = 0.8
DEFAULT_TARGET_CAP = 400


class ChunkSize(NamedTuple):
    """Sizes in tokens that hold for one encoder.

    Attributes:
        target: Length that passages aim at, context line included.
        most: Length that the planner stays under; between `target` and `limit`.
        limit: What the encoder takes: no embedded text is ever longer.
        overlap: Most tokens that a passage repeats from the one before.
    """

    target: int
    most: int
    limit: int
    overlap: int


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """How documents are cut into passages.

    Attributes:
        target_tokens: Length that passages aim at, in tokens of the encoder, 16 to 8192. None means 80% of
            what the encoder takes, at most 400.
        overlap_tokens: Whole sentences, up to this many tokens, that a passage repeats from the one before it
            in the same section; at most half the target.
        heading_context: Whether title and headings are embedded in front of the passage's text.

    Raises:
        UsageError: A value of the wrong type or out of range.

    Example:
        >>> ChunkSettings(target_tokens=120).sizes(254)
        ChunkSize(target=120, most=150, limit=254, overlap=0)
        >>> ChunkSettings.from_json({"target": 120})
        Traceback (most recent call last):
        ...
        likewise.errors.UsageError: unknown chunk setting 'target'
          try: use one of: target_tokens, overlap_tokens, heading_context
    """

    target_tokens: int | None = None
    overlap_tokens: int = 0
    heading_context: bool = True

    def __post_init__(self) -> None:
        if self.target_tokens is not None:
            _whole_number("target_tokens", self.target_tokens, MIN_TARGET_TOKENS, MAX_TARGET_TOKENS)
        most_overlap = (self.target_tokens or DEFAULT_TARGET_CAP) // 2
        _whole_number("overlap_tokens", self.overlap_tokens, 0, most_overlap)
        if not isinstance(self.heading_context, bool):
            raise UsageError(f"heading_context must be true or false, not {self.heading_context!r}")

    @classmethod
    def from_json(cls, values: Mapping[str, Json]) -> ChunkSettings:
        """Settings from a stored or written-out mapping.

        Raises:
            UsageError: An unknown key, or a value of the wrong type or out of range.
        """
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                raise UsageError(f"unknown chunk setting {key!r}", remedy=f"use one of: {', '.join(known)}")
        return cls(**values)  # type: ignore[arg-type]  # __post_init__ checks the types

    def to_json(self) -> dict[str, Json]:
        """The mapping that `from_json` reads."""
        return asdict(self)

    def sizes(self, passage_tokens: int) -> ChunkSize:
        """Sizes that hold for an encoder.

        Args:
            passage_tokens: Tokens that the encoder takes (`TextEncoder.passage_tokens`).

        Raises:
            UsageError: The target is larger than the encoder takes.
        """
        limit = max(1, passage_tokens)
        if self.target_tokens is None:
            target = max(1, min(int(limit * DEFAULT_TARGET_SHARE), DEFAULT_TARGET_CAP))
        elif self.target_tokens > limit:
            raise UsageError(
                f"passages of {self.target_tokens} tokens do not fit an encoder that takes {limit}",
                remedy=f"choose a target of at most {limit} tokens",
            )
        else:
            target = self.target_tokens
        most = min(limit, target + max(1, target // 4))
        return ChunkSize(target, most, limit, min(self.overlap_tokens, target // 2))


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """How a sync divides its work; none of it changes what is stored.

    Attributes:
        group_passages: Passages that are embedded together, across documents, sorted by length; 1 to 100000.
            Large groups waste less on padding.
        commit_seconds: How long embedding a group may take, in seconds, 0 to 3600: what a kill can cost. The
            group is made as large as the encoder's speed allows.
    """

    group_passages: int = 4096
    commit_seconds: float = 15.0

    def __post_init__(self) -> None:
        _whole_number("group_passages", self.group_passages, 1, 100_000)
        _number("commit_seconds", self.commit_seconds, 0, 3600)


def _whole_number(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} must be a whole number, not {value!r}")
    _in_range(name, value, least, most)


def _number(name: str, value: object, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{name} must be a number, not {value!r}")
    _in_range(name, value, least, most)


def _in_range(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise UsageError(f"{name} must be between {least} and {most}, not {value}")
