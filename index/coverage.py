"""How well an encoder's vocabulary covers a text: the sign that it was not made for this language.

An encoder that does not understand a text still returns a vector, and nothing in the vector says so. Its
tokenizer does: it cannot spell most of the characters (an English vocabulary has few Chinese ones), or only
letter by letter (Russian, Arabic, Korean). Measured on tokens alone, so that it costs no run of the model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from likewise.index.catalogue_read import read_passages, sample_ids
from likewise.index.records import Json

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder
    from likewise.index.catalogue import Catalogue

COVERAGE = "coverage"
"""Key of the setting that holds the coverage of an index."""

POOR = 0.75
"""Below this, searching by meaning is worse than searching by words. English is at 1.0 with an English
encoder, German and Spanish too, and Chinese with the default encoder. Russian and Arabic are between 0.3 and
0.55, as Chinese is where the vocabulary was not extended."""

SUITABLE = (
    "all-MiniLM-L6-v2-zh (English and Chinese)",
    "intfloat/multilingual-e5-small",
    "intfloat/multilingual-e5-base",
    "BAAI/bge-m3",
    "BAAI/bge-small-zh-v1.5 (Chinese only)",
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
)
"""Encoders for more languages than English, from small to large with special ones last."""

REMEDY = "likewise index --encoder NAME --reembed"

# Letters per token that a vocabulary made for the script reaches easily. English has 4 to 5 in an English
# vocabulary, German 2.8; characters of scripts that write a syllable or a word with one have about 1.
_NORMAL, _NORMAL_WIDE = 2.0, 0.8
# Kana are counted apart: a vocabulary that knows the characters of Chinese alone spells what is between them.
_NORMAL_KANA = 1.8
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa\u31f0-\u31ff]")
_WIDE = re.compile(
    "[\u1100-\u11ff\u3005-\u3007\u3041-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af]"
)

_SAMPLE = 200
_SAMPLE_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Coverage:
    """How well a vocabulary covers some text.

    Attributes:
        unknown: Share of the tokens that stand for "not in the vocabulary", in [0, 1].
        letters_per_token: Letters in a token that has one outside ASCII; 0.0 for text without any.
        value: In [0, 1]; 1 is a language that the vocabulary was made for. It is the share of known tokens,
            times the share of tokens that are not spelt out: (1 - unknown) * (1 - s * (1 - r)), where s is
            the share of tokens with a letter outside ASCII and r = min(1, normal number of those / their
            number); for tokens with kana and for all others apart.
    """

    unknown: float
    letters_per_token: float
    value: float

    @property
    def poor(self) -> bool:
        """Whether the encoder should not be trusted with such text."""
        return self.value < POOR

    def to_json(self) -> dict[str, Json]:
        """The fields under their own names."""
        return {
            "unknown": self.unknown,
            "letters_per_token": self.letters_per_token,
            "value": self.value,
        }

    @classmethod
    def from_json(cls, value: Json) -> Coverage | None:
        """The coverage that `to_json` gave, None for anything else."""
        if not isinstance(value, dict):
            return None
        numbers = [value.get(name) for name in ("unknown", "letters_per_token", "value")]
        if not all(isinstance(number, (int, float)) for number in numbers):
            return None
        return cls(*(float(number) for number in numbers))  # type: ignore[arg-type]  # checked above


def measure_coverage(encoder: TextEncoder, texts: Sequence[str]) -> Coverage:
    """How well the vocabulary of an encoder covers texts, each counting by its length.

    Example:
        >>> from likewise.embedder.hash_encoder import HashEncoder
        >>> measure_coverage(HashEncoder(), ["rotate a signing key", "輪替金鑰"])
        Coverage(unknown=0.0, letters_per_token=1.0, value=1.0)
    """
    tokens = unknown = letters = wide = lettered = kana = kana_tokens = 0.0
    shares = encoder.unknown_share(texts)
    for text, share, spans in zip(texts, shares.tolist(), encoder.token_spans(texts), strict=True):
        tokens += len(spans)
        unknown += share * len(spans)
        reached = 0
        for start, end in spans.tolist():
            # The parts of a letter that was taken apart (Hangul) share its span: it is one letter.
            piece = text[max(start, reached) : end]
            count = sum(character.isalpha() for character in piece)
            # Plain Latin letters say nothing: part numbers and typos are spelt out in any vocabulary.
            if (count and not piece.isascii()) or (not piece and not text[start:end].isascii()):
                lettered += 1
                letters += count
                syllables = len(_KANA.findall(piece))
                kana += syllables
                kana_tokens += syllables > 0
                wide += len(_WIDE.findall(piece)) - syllables
            reached = max(reached, end)
    missing = unknown / tokens if tokens else 0.0
    others, other_tokens = letters - kana, lettered - kana_tokens
    normal = (others - wide) / _NORMAL + wide / _NORMAL_WIDE
    # A few short words ("a", "C++") are no sign of a foreign script.
    many = letters > 2 * _NORMAL
    reached_share = min(1.0, normal / other_tokens) if other_tokens and many else 1.0
    reached_kana = min(1.0, kana / _NORMAL_KANA / kana_tokens) if kana_tokens and many else 1.0
    # Weighed by how much of the text it is: the Greek letters of an English article do not make it Greek.
    spelt = (1.0 - reached_share) * other_tokens + (1.0 - reached_kana) * kana_tokens
    spelt_out = spelt / tokens if tokens else 0.0
    return Coverage(missing, letters / lettered if lettered else 0.0, (1.0 - missing) * (1.0 - spelt_out))


def update_coverage(catalogue: Catalogue, encoder: TextEncoder) -> Coverage | None:
    """Measure a sample of the passages of an index and store the result in its settings.

    Args:
        catalogue: Open for writing.
        encoder: The encoder of the index.

    Returns:
        What was measured; None for an index without passages.
    """
    with catalogue.reading() as connection:
        passages = read_passages(connection, sample_ids(connection, _SAMPLE)).values()
    if not passages:
        return None
    texts = [passage.passage.text[:_SAMPLE_CHARACTERS] for passage in passages]
    found = measure_coverage(encoder, texts)
    catalogue.set_meta({COVERAGE: {"fingerprint": encoder.fingerprint, **found.to_json()}})
    return found


def stored_coverage(value: Json, fingerprint: str) -> Coverage | None:
    """The coverage of an index as `update_coverage` stored it; None if it is that of another encoder."""
    if not isinstance(value, dict) or value.get("fingerprint") != fingerprint:
        return None
    return Coverage.from_json(value)


def coverage_notice(encoder_name: str, coverage: Coverage, what: str) -> str:
    """One sentence for a person: what is not covered, and which encoders would do.

    Args:
        encoder_name: The encoder.
        coverage: A poor one.
        what: What was measured: "this query" or "this index".
    """
    if coverage.unknown >= 0.05:
        reason = f"does not know {coverage.unknown:.0%} of the tokens of {what}"
    else:
        reason = f"spells the words of {what} almost letter by letter"
    others = [name for name in SUITABLE if name.split(" ")[0] != encoder_name]
    return (
        f"the encoder {encoder_name} {reason}: it was not made for this language, so results rest on the"
        f" words more than on the meaning; encoders that would do: {', '.join(others)}; to change:"
        f" {REMEDY}"
    )
