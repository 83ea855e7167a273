"""Choose the reader for a document by its content first and its name second, and run it.

A format is added by one new module in `formats` that defines `READER`; nothing here names one. This module
imports every format module, so those import their libraries inside functions.
"""

from __future__ import annotations

import pkgutil
import re
import zlib
from dataclasses import replace
from functools import lru_cache
from importlib import import_module

from likewise.index.readers import formats
from likewise.index.readers.base import Reader, Source, Unreadable, too_much_text
from likewise.index.readers.sniff import SUFFIX_KINDS, family, sniff
from likewise.index.records import DocumentState, Extraction, Skip

_HTML_START = re.compile(rb"\s*(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html[\s>])", re.I | re.S)


@lru_cache(maxsize=1)
def readers() -> tuple[Reader, ...]:
    """Every reader, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(formats.__path__, formats.__name__ + "."))
    found = [module.READER for module in map(import_module, names) if hasattr(module, "READER")]
    return tuple(sorted(found, key=lambda reader: reader.name))


def current_readers() -> frozenset[str]:
    """The `reader` values that this version writes.

    A stored document whose reader is not among them was read by another version and is worth reading again.
    """
    return frozenset((*(reader.id for reader in readers()), no_reader()))


def no_reader() -> str:
    """What stands for the reader of an unsupported file; it changes when readers are added or change."""
    ids = " ".join(reader.id for reader in readers())
    return f"none/{zlib.crc32(ids.encode()):08x}"


def read(source: Source) -> Extraction | Skip:
    r"""Read one document in this process. Use `isolate` for files that nobody vouches for.

    Args:
        source: The document; its `kind` is found out here.

    Raises:
        MemoryError: Left to the caller, which knows the limit. Other exceptions of a reader are its bugs.

    Example:
        >>> read(Source(b"# Keys\n\nRotate them.", suffix=".md")).title
        'Keys'
        >>> read(Source(b"\x89PNG\r\n\x1a\n", suffix=".txt")).reason
        'is a PNG image, for which there is no reader'
    """
    if not source.data:
        return Skip(DocumentState.EMPTY, "is empty", no_reader())
    reader: Reader | None = None
    try:
        reader, kind = _choose(source)
        extraction = reader.read(replace(source, kind=kind))
        if len(extraction.text) > source.max_characters:
            raise too_much_text(source.max_characters)
        if not extraction.text.strip():
            raise Unreadable(DocumentState.EMPTY, "holds no text")
    except Unreadable as error:
        state, reason = error.state, error.reason
        promised = _by_name(source)
        if promised and promised.kinds and reader and not reader.kinds and state is DocumentState.UNSUPPORTED:
            # Neither what its suffix says nor text: damage, rather than a format that nobody has written yet.
            state, reason = DocumentState.FAILED, f"is damaged: no {promised.name} file begins like this"
        return Skip(state, reason, reader.id if reader else no_reader())
    return _finished(extraction, reader)


def _choose(source: Source) -> tuple[Reader, str]:
    kind = sniff(source.data)
    named = _by_name(source)
    if kind == "encrypted-ooxml":
        raise Unreadable(DocumentState.ENCRYPTED, "needs a password")
    if kind == "zip" and named and named.kinds:
        # The suffix promises a format that is a zip archive, and this archive is not one: let its reader say
        # why.
        return named, kind
    if kind:
        for reader in readers():
            if kind in reader.kinds:
                return reader, kind
        raise _unsupported(kind)
    if named and not named.kinds:
        return named, "text"
    refused = SUFFIX_KINDS.get(source.suffix)
    if refused:
        raise _unsupported(refused)
    # No suffix that says so, yet it may be text. An HTML page called report.doc is common.
    name = (
        "html" if _HTML_START.match(source.data[:4096]) else "code" if source.data[:2] == b"#!" else "plain"
    )
    return next(reader for reader in readers() if reader.name == name), "unknown"


def _by_name(source: Source) -> Reader | None:
    for reader in readers():
        if source.name in reader.names:
            return reader
    return next((reader for reader in readers() if source.suffix in reader.suffixes), None)


def _unsupported(kind: str) -> Unreadable:
    name = family(kind)
    article = "an" if name[:1] in "AEIOe" or name[:3] in ("MP3", "MPE", "RAR", "SVG", "xz ") else "a"
    return Unreadable(DocumentState.UNSUPPORTED, f"is {article} {name}, for which there is no reader")


def _finished(extraction: Extraction, reader: Reader) -> Extraction:
    """The extraction with what no reader has to do itself: who read it, and in what language it is."""
    from likewise.index.language import detect_language

    language = normalize_language(extraction.language) or detect_language(extraction.body)
    return replace(extraction, reader=reader.id, language=language, title=" ".join(extraction.title.split()))


def normalize_language(tag: str) -> str:
    """The ISO 639 code of a language tag, "" for what is not one.

    Example:
        >>> normalize_language("zh-Hant-TW"), normalize_language("EN_us"), normalize_language("english")
        ('zh', 'en', '')
    """
    primary = re.split(r"[-_.@]", tag.strip(), maxsplit=1)[0].lower()
    return primary if re.fullmatch(r"[a-z]{2,3}", primary) and primary not in ("und", "mul", "zxx") else ""
