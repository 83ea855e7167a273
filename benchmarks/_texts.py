"""Text that the pretraining benchmarks train on, from the data folder."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from _measure import need, read_jsonl

# A line of verse or a stage direction of the plays, which are XML.
_SPOKEN = re.compile(r"<(?:LINE|STAGEDIR)>([^<]+)")


def english_lines() -> list[str]:
    """Lines of wikitext-2 and of public-domain speeches and plays: headings, verses, long paragraphs."""
    lines: list[str] = []
    for name in ("valid.txt.gz", "test.txt.gz"):
        lines += gzip.decompress(need("wikitext-2", name).read_bytes()).decode("utf-8").splitlines()
    folder = need("text-public-domain")
    for path in sorted(folder.rglob("*.txt")):
        lines += _text(path).splitlines()
    for path in sorted(folder.rglob("*.xml")):
        lines += _SPOKEN.findall(_text(path))
    return [line.strip() for line in lines if line.strip()]


def english_documents(longest: int = 20_000) -> Iterator[str]:
    """The same lines as documents of about `longest` characters, for objectives about sentences."""
    yield from _joined(english_lines(), longest)


def chinese_documents() -> Iterator[str]:
    """Documentation of FastAPI in Simplified and Traditional Chinese, and Traditional paragraphs of DRCD."""
    for language in ("zh", "zh-hant"):
        for path in sorted(need("docs-fastapi", language).rglob("*.md")):
            yield path.read_text(encoding="utf-8")
    for row in read_jsonl(need("drcd-dev"), "corpus.jsonl"):
        yield row["text"]


def _joined(lines: list[str], longest: int) -> Iterator[str]:
    group: list[str] = []
    size = 0
    for line in lines:
        group.append(line)
        size += len(line)
        if size >= longest:
            yield "\n".join(group)
            group, size = [], 0
    if group:
        yield "\n".join(group)


def _text(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:  # seven of the speeches
        return content.decode("cp1252", errors="replace")
