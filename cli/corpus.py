"""The text of files and folders, for the commands that train on it.

Every format that an index reads is read here by the same readers. Taken as well, a block at a time, are text
files that are compressed with gzip or larger than an index takes. What cannot be read is told and left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.cli.output import count_text, note, warn
from likewise.cli.terminal import path_text
from likewise.errors import DataError

if TYPE_CHECKING:
    from likewise.embedder.corpus_build import SourceText

# Files that were left out and are named; the rest is counted.
_SHOWN = 10


class CorpusFiles:
    """The documents in some files and folders.

    Args:
        paths: Files and folders; ignore files are honoured, hidden folders left out.

    Raises:
        DataError: A path does not exist, or there is no file at all.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        from likewise.index.scan import FileEntry, scan

        self._files: list[Path] = []
        facts = []
        for path in paths:
            if not path.exists():
                raise DataError(f"there is no file or folder {path}")
            if path.is_file():
                status = path.stat()
                self._files.append(path.resolve())
                facts.append((str(path.resolve()), status.st_size, status.st_mtime_ns))
                continue
            for entry in scan(path.resolve(), base=path.resolve(), index_folder=path.resolve() / ".likewise"):
                if isinstance(entry, FileEntry):
                    self._files.append(entry.path)
                    facts.append((str(entry.path), entry.size, entry.mtime_ns))
        if not self._files:
            raise DataError(f"expected documents in {', '.join(map(str, paths))}, found no file")
        self.fingerprint = hashlib.blake2b(
            repr(sorted(facts)).encode("utf-8", "replace"), digest_size=16
        ).hexdigest()
        self._told = False

    def texts(self) -> Iterable[str]:
        """The text of all of them, read anew each time it is gone through."""
        return _Texts(self)

    def documents(self) -> Iterator[SourceText]:
        """Read all of them, long texts as several documents."""
        from likewise.embedder.corpus_build import SourceText
        from likewise.embedder.plain_documents import SUFFIXES, cut_text, read_files
        from likewise.index.readers.base import ReaderLimits
        from likewise.index.readers.isolate import ReaderPool
        from likewise.index.records import Skip

        limits = ReaderLimits()
        streamed = [
            file
            for file in self._files
            if file.name.endswith(SUFFIXES)
            and (file.suffix == ".gz" or file.stat().st_size > limits.max_bytes)
        ]
        yield from read_files(streamed)
        taken = set(streamed)
        left_out = 0
        with ReaderPool(limits) as pool:
            for result in pool.read_many((file, str(file)) for file in self._files if file not in taken):
                found = result.outcome
                if isinstance(found, Skip):
                    left_out += 1
                    if left_out <= _SHOWN and not self._told:
                        note(f"left out {path_text(result.key)}: {found.reason}")
                    continue
                for part in cut_text(found.body):
                    yield SourceText(part)
        if left_out and not self._told:
            warn(f"{count_text(left_out, 'file')} could not be read and were left out")
        self._told = True  # a second pass over the files has nothing new to tell


class _Texts:
    def __init__(self, files: CorpusFiles) -> None:
        self._files = files

    def __iter__(self) -> Iterator[str]:
        return (document.text for document in self._files.documents())
