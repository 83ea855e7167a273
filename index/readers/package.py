"""Parts of zip-based documents, unpacked within bounds and parsed without a tree.

Document Type Definitions are refused, so that entities can neither multiply nor name files. Parsing is a
stream of events for a handler with its own stack: no document is too deep for it.
"""

from __future__ import annotations

import posixpath
import struct
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from typing import Protocol
from urllib.parse import unquote
from xml.parsers import expat

from likewise.index.readers.base import MEBI, Unreadable
from likewise.index.records import DocumentState

# Honest parts are far smaller; a bomb is stopped here after a fraction of a second.
_MAX_PART = 64 * MEBI
_CHUNK = 1 << 18
# What zipfile raises for archives with wrong bytes; ValueError for negative offsets and undecodable names.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, ValueError, NotImplementedError)
_NAMESPACE_SEPARATOR = "|"


class Handler(Protocol):
    """Receives the events of one XML part. Names are `namespace|local`."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Characters inside the current element."""


class Package:
    """The parts of a zip archive by name.

    Args:
        data: The archive.

    Raises:
        Unreadable: It is no zip archive, or a damaged one.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
            self._names = {name.lower(): name for name in self._archive.namelist()}
        except _DAMAGE as error:
            raise Unreadable(DocumentState.FAILED, f"is damaged: {error}") from error

    @property
    def names(self) -> frozenset[str]:
        """Names of all parts, as the archive spells them."""
        return frozenset(self._names.values())

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._names

    def read(self, name: str) -> bytes:
        """The content of a part.

        Raises:
            Unreadable: It is missing, damaged, encrypted, or unpacks to more than honest parts do.
        """
        try:
            info = self._archive.getinfo(self._names[name.lower()])
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile("compressed in a way that documents do not use")
            with self._archive.open(info) as part:
                content = part.read(_MAX_PART + 1)
        except KeyError as error:
            raise Unreadable(DocumentState.FAILED, f"is damaged: it has no part {name!r}") from error
        except _DAMAGE as error:
            raise Unreadable(DocumentState.FAILED, f"is damaged: part {name!r}: {error}") from error
        except RuntimeError as error:  # what zipfile raises for a password, and nothing more precise
            raise Unreadable(DocumentState.ENCRYPTED, "needs a password") from error
        if len(content) > _MAX_PART:
            raise Unreadable(DocumentState.TOO_LARGE, f"unpacks to more than {_MAX_PART:,} bytes")
        return content

    def parse(self, name: str, handler: Handler) -> None:
        """Feed the XML of a part to a handler.

        Raises:
            Unreadable: As for `read`, or the part is no well-formed XML, or it holds a DTD.
        """
        content = self.read(name)
        parser = expat.ParserCreate(namespace_separator=_NAMESPACE_SEPARATOR)
        parser.buffer_text = True
        parser.StartElementHandler = handler.start
        parser.EndElementHandler = handler.end
        parser.CharacterDataHandler = handler.text
        parser.StartDoctypeDeclHandler = _refuse_doctype
        try:
            for start in range(0, len(content), _CHUNK):
                parser.Parse(content[start : start + _CHUNK], False)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise Unreadable(DocumentState.FAILED, f"is damaged: part {name!r}: {error}") from error

    def relations(self, name: str) -> dict[str, list[str]]:
        """Targets of a part's relationships by the last word of their type; "" is the package itself."""
        folder, file = posixpath.split(name)
        part = posixpath.join(folder, "_rels", f"{file}.rels")
        relations = _Relations(folder)
        if part in self:
            self.parse(part, relations)
        return relations.found


def _refuse_doctype(name: str, system: str | None, public: str | None, internal: bool) -> None:
    raise Unreadable(DocumentState.FAILED, "holds a document type definition, which is refused")


class _Relations:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.found: dict[str, list[str]] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name.endswith("|Relationship") and attributes.get("TargetMode") != "External":
            target = unquote(attributes.get("Target", ""))
            absolute = target.startswith("/")
            path = (
                target.lstrip("/") if absolute else posixpath.normpath(posixpath.join(self._folder, target))
            )
            kind = attributes.get("Type", "").rpartition("/")[2]
            self.found.setdefault(kind, []).append(path)

    def end(self, name: str) -> None:
        pass

    def text(self, text: str) -> None:
        pass
