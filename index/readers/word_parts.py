"""Side parts of a Word document: styles, list numbering, document properties.

Handlers for `package.Package.parse`. They only collect; `word_body` draws the conclusions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

_PREFIXES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w:",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w:",
    "http://schemas.openxmlformats.org/officeDocument/2006/math": "m:",
    "http://purl.oclc.org/ooxml/officeDocument/math": "m:",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc:",
}
_HEADING_NAME = re.compile(r"(?:heading|überschrift|titre|título|标题|標題|見出し)\s*([1-9])$", re.I)
_CHINESE = frozenset(
    (
        "chineseCounting",
        "chineseCountingThousand",
        "taiwaneseCounting",
        "taiwaneseCountingThousand",
        "japaneseCounting",
    )
)
_MAX_BASES = 20  # styles may be based on each other in a circle


@lru_cache(maxsize=4096)
def short(name: str) -> str:
    """A name with the usual prefix, "" for namespaces that carry no text.

    Example:
        >>> short("http://purl.oclc.org/ooxml/wordprocessingml/main|p")
        'w:p'
    """
    namespace, _, local = name.rpartition("|")
    prefix = _PREFIXES.get(namespace)
    return prefix + local if prefix else ""


def attribute(attributes: Mapping[str, str], name: str = "val") -> str:
    """The attribute of the main namespace, transitional or strict, "" if absent."""
    for namespace in _PREFIXES:
        value = attributes.get(f"{namespace}|{name}")
        if value is not None:
            return value
    return ""


def number(text: str, default: int = -1) -> int:
    """A small whole number from an attribute; hostile documents put anything there."""
    return int(text) if re.fullmatch(r"-?\d{1,6}", text) else default


@dataclass(slots=True)
class Style:
    """What a paragraph style says about structure; -1 or "" where it says nothing."""

    name: str = ""
    base: str = ""
    outline: int = -1
    list_id: str = ""
    list_level: int = -1


class Styles:
    """Paragraph styles by id."""

    def __init__(self) -> None:
        self._styles: dict[str, Style] = {}
        self._current = Style()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        match short(name):
            case "w:style":
                self._current = self._styles[attribute(attributes, "styleId")] = Style()
            case "w:name":
                self._current.name = attribute(attributes)
            case "w:basedOn":
                self._current.base = attribute(attributes)
            case "w:outlineLvl":
                self._current.outline = number(attribute(attributes))
            case "w:numId":
                self._current.list_id = attribute(attributes)
            case "w:ilvl":
                self._current.list_level = number(attribute(attributes))

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Characters; none matter here."""

    def resolved(self, style_id: str) -> Style:
        """A style with what it takes over from the styles that it is based on."""
        result = Style()
        for _ in range(_MAX_BASES):
            style = self._styles.get(style_id)
            if style is None:
                break
            result.name = result.name or style.name
            if result.outline < 0:
                heading = _HEADING_NAME.match(style.name)
                result.outline = int(heading[1]) - 1 if heading else style.outline
            if not result.list_id and style.list_id:
                result.list_id, result.list_level = style.list_id, style.list_level
            style_id = style.base
        return result


@dataclass(slots=True)
class _Level:
    format: str = "decimal"
    pattern: str = ""
    start: int = 1


@dataclass(slots=True)
class _List:
    abstract: str = ""
    starts: dict[int, int] = field(default_factory=dict)


class Numbering:
    """List definitions, and the counters of the lists while the document is read."""

    def __init__(self) -> None:
        self._levels: dict[str, dict[int, _Level]] = {}
        self._lists: dict[str, _List] = {}
        self._abstract = ""
        self._list = ""
        self._level = 0
        self._counters: dict[str, dict[int, int]] = {}
        self._begun: set[tuple[str, int]] = set()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        match short(name):
            case "w:abstractNum":
                self._abstract, self._list = attribute(attributes, "abstractNumId"), ""
            case "w:num":
                self._list, self._abstract = attribute(attributes, "numId"), ""
                self._lists[self._list] = _List()
            case "w:abstractNumId" if self._list:
                self._lists[self._list].abstract = attribute(attributes)
            case "w:lvl" | "w:lvlOverride":
                self._level = number(attribute(attributes, "ilvl"), 0)
            case "w:startOverride" if self._list:
                self._lists[self._list].starts[self._level] = number(attribute(attributes), 1)
            case "w:numFmt" if self._abstract:
                self._definition().format = attribute(attributes)
            case "w:lvlText" if self._abstract:
                self._definition().pattern = attribute(attributes)
            case "w:start" if self._abstract:
                self._definition().start = number(attribute(attributes), 1)

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Characters; none matter here."""

    def next_label(self, list_id: str, level: int) -> str:
        """What Word shows in front of the next paragraph of a list: "-" for bullets, "2.1" or "b)" or ""."""
        found = self._lists.get(list_id)
        if found is None:
            return "-" if list_id not in ("", "0") else ""
        levels = self._levels.get(found.abstract, {})
        definition = levels.get(level, _Level("bullet"))
        counters = self._counters.setdefault(found.abstract, {})
        if level in found.starts and (list_id, level) not in self._begun:
            counters.pop(level, None)
        self._begun.add((list_id, level))
        first = found.starts.get(level, definition.start)
        counters[level] = counters[level] + 1 if level in counters else first
        for deeper in [key for key in counters if key > level]:
            del counters[deeper]
        if definition.format == "bullet":
            return "-"
        if definition.format == "none":
            return ""

        def shown(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            shape = levels.get(place, _Level())
            return format_number(counters.get(place, shape.start), shape.format)

        return re.sub(r"%([1-9])", shown, definition.pattern).strip()

    def _definition(self) -> _Level:
        return self._levels.setdefault(self._abstract, {}).setdefault(self._level, _Level())


def format_number(value: int, shape: str) -> str:
    """A list number in one of Word's formats; formats that are not known here become digits.

    Example:
        >>> [format_number(4, shape) for shape in ("decimal", "upperRoman", "lowerLetter", "chineseCounting")]
        ['4', 'IV', 'd', '四']
    """
    if shape in ("lowerLetter", "upperLetter") and value > 0:
        letter = chr(ord("a") + (value - 1) % 26) * min((value - 1) // 26 + 1, 8)
        return letter if shape == "lowerLetter" else letter.upper()
    if shape in ("lowerRoman", "upperRoman") and 0 < value < 4000:
        roman = _roman(value)
        return roman.lower() if shape == "lowerRoman" else roman
    if shape in _CHINESE and 0 < value < 100:
        tens, ones = divmod(value, 10)
        digits = "零一二三四五六七八九"
        return (digits[tens] if tens > 1 else "") + ("十" if tens else "") + (digits[ones] if ones else "")
    return f"{value:02d}" if shape == "decimalZero" else str(value)


def _roman(value: int) -> str:
    result = ""
    for worth, letters in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"),
        strict=True,
    ):
        count, value = divmod(value, worth)
        result += letters * count
    return result


class Leaves:
    """Texts of elements by local name, for the property parts: `title`, `creator`, `Pages`."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._text = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self._text = ""

    def end(self, name: str) -> None:
        """An element ends."""
        text = " ".join(self._text.split())
        if text:
            self.found.setdefault(name.rpartition("|")[2], text)
        self._text = ""

    def text(self, text: str) -> None:
        """Characters inside the current element."""
        self._text += text
