"""The text of a link with what it leads to, for links within the folder.

Links of Markdown, of wikis and of reStructuredText stand in the text; those of HTML the document knows.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote

from likewise.index.readers.formats.markdown import plain_title, structure
from likewise.index.records import passage_context
from likewise.retrieval.pairs.documents import Documents, Link, PairDocument
from likewise.retrieval.pairs.records import TextPair
from likewise.retrieval.pairs.sections import Section, is_markdown, sections_of, slug
from likewise.retrieval.pairs.wording import answers, asks, beginning, without_name

_INLINE = re.compile(
    r"(?<!!)\[(?P<text>[^\[\]]+)\]\(\s*<?(?P<target>[^\s()<>]+)>?(?:\s+[\"'(][^\"')]*[\"')])?\s*\)"
)
_REFERENCE = re.compile(r"(?<!!)\[(?P<text>[^\[\]]+)\]\[(?P<label>[^\[\]]*)\]")
_DEFINITION = re.compile(r"^ {0,3}\[(?P<label>[^\[\]]+)\]:[ \t]*<?(?P<target>[^\s<>]+)>?", re.M)
_WIKI = re.compile(r"\[\[(?P<target>[^\[\]|]+)(?:\|(?P<text>[^\[\]|]+))?\]\]")
_RST = re.compile(r"(?P<role>:doc:)?`(?P<text>[^`<>]+?)\s*<(?P<target>[^`<>]+)>`(?P<mark>__?)?")
_SCHEME = re.compile(r"[a-zA-Z][\w+.-]*:|//")
_INDEX_NAMES = ("index", "readme", "_index")


class Targets:
    """Finds the document that a link leads to.

    Args:
        keys: Of all documents.

    Example:
        >>> targets = Targets(["guide/keys.md", "guide/index.md"])
        >>> targets.find("guide/index.md", "keys#rotation"), targets.find("guide/keys.md", "./")
        ('guide/keys.md', 'guide/index.md')
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys: dict[str, str] = {}
        for key in keys:
            path = PurePosixPath(key)
            stem = str(path.with_suffix(""))
            names = [key, stem, *([str(path.parent)] if path.stem.casefold() in _INDEX_NAMES else [])]
            for name in names:
                self._keys.setdefault(name, key)

    def find(self, source: str, target: str) -> str | None:
        """Key of the document that a target written in another document means; None if there is none."""
        path = unquote(target.partition("#")[0].partition("?")[0])
        if _SCHEME.match(target):
            return None
        if not path:
            return source
        absolute = path.startswith("/")
        joined = path.lstrip("/") if absolute else posixpath.join(posixpath.dirname(source), path)
        key = posixpath.normpath(joined)
        return self._keys.get(key) or self._keys.get(str(PurePosixPath(key).with_suffix("")))


def links_of(document: PairDocument) -> Iterator[Link]:
    """Links of a document in text order, those in code left out."""
    suffix = PurePosixPath(document.key).suffix.lower()
    written: list[tuple[int, str, str]] = []
    if is_markdown(document.key):
        written = _in_markdown(document.text)
    elif suffix in (".rst", ".rest"):
        found = (match for match in _RST.finditer(document.text) if match["role"] or match["mark"])
        written = [(match.start(), match["text"], match["target"]) for match in found]
    for start, text, target in sorted(written):
        yield Link(plain_title(text), target, document.line_at(start))
    yield from document.unseen_links()


def _in_markdown(text: str) -> list[tuple[int, str, str]]:
    """Offset, text and target of each link."""
    defined = {match["label"].casefold(): match["target"] for match in _DEFINITION.finditer(text)}
    found = [(match.start(), match["text"], match["target"]) for match in _INLINE.finditer(text)]
    for match in _REFERENCE.finditer(text):
        target = defined.get((match["label"] or match["text"]).casefold())
        if target is not None:
            found.append((match.start(), match["text"], target))
    for match in _WIKI.finditer(text):
        shown = match["text"] or match["target"].partition("#")[0]
        found.append((match.start(), shown, match["target"]))
    code = structure(text).verbatim
    return [link for link in found if not any(span.start <= link[0] < span.end for span in code)]


def link_pairs(document: PairDocument, documents: Documents, targets: Targets) -> Iterator[TextPair]:
    """The text of each link with the section, or the beginning of the document, that it leads to."""
    for link in links_of(document):
        text = link.text
        key = targets.find(document.key, link.target)
        if key is None or not asks(text):
            continue
        fragment = unquote(link.target.partition("#")[2])
        if key == document.key and not fragment:
            continue
        aimed = _aimed_at(documents[key], fragment, text)
        if aimed is None:
            continue
        positive, lines = aimed
        yield TextPair("link", text, positive, key, lines, document.key, link.line)


def _aimed_at(document: PairDocument, fragment: str, name: str) -> tuple[str, tuple[int, int]] | None:
    """The text that a link leads to, without a line that says only what the link does, and its lines."""
    section = _named(document, fragment) if fragment else None
    if fragment and section is None:
        return None
    if section is None:
        passage = document.passages[0]
        text = without_name(document.title, passage, name)
        return (text, passage.lines) if answers(text) else None
    span = beginning(document.text, section.body)
    text = span.of(document.text)
    if not answers(text):
        return None
    above = passage_context(document.title, section.path[:-1])
    return (f"{above}\n{text}" if above else text), document.lines_of(span)


def _named(document: PairDocument, fragment: str) -> Section | None:
    wanted = {fragment, slug(fragment)}
    return next((each for each in sections_of(document) if not wanted.isdisjoint(each.ids)), None)
