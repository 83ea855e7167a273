"""Plain text files as documents, and long texts cut into documents of a size that can be held out.

Formats other than plain text are the business of the index readers, whose text can be handed to
`pretrain` just as well.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from likewise.embedder.corpus_build import SourceText
from likewise.errors import DataError

SUFFIXES = (".txt", ".md", ".rst", ".txt.gz", ".md.gz", ".rst.gz")
# A book of a million characters would be held out whole or not at all.
LONGEST = 20_000
# Bytes read at a time.
_BLOCK = 1 << 20
_PARAGRAPH = re.compile(r"\n\s*\n")


def cut_text(text: str, longest: int = LONGEST) -> Iterator[str]:
    r"""Cut a long text into documents at blank lines.

    Args:
        text: Any text.
        longest: Characters after which the next blank line ends a document; a text without blank lines is
            cut at line ends, else anywhere.

    Example:
        >>> list(cut_text("one\n\ntwo\n\nthree", longest=8))
        ['one\n\ntwo', '\n\nthree']
    """
    begin = 0
    while len(text) - begin > longest:
        end = _end(text, begin, longest)
        yield text[begin:end]
        begin = end
    if begin < len(text):
        yield text[begin:]


def cut_stream(blocks: Iterable[str], longest: int = LONGEST) -> Iterator[str]:
    """The same for a text that comes in blocks and need not fit into memory.

    Args:
        blocks: They are the text, end to end.
        longest: See `cut_text`.

    Example:
        >>> list(cut_stream(["one two", " three"], longest=4))
        ['one ', 'two ', 'thre', 'e']
    """
    text = ""
    for block in blocks:
        text += block
        begin = 0
        while len(text) - begin >= 2 * longest:  # what comes after cannot change where this document ends
            end = _end(text, begin, longest)
            yield text[begin:end]
            begin = end
        text = text[begin:]
    yield from cut_text(text, longest)


def _end(text: str, begin: int, longest: int) -> int:
    """Where the document that begins here ends; looks at the next 2 * longest characters."""
    ends = [match.start() for match in _PARAGRAPH.finditer(text, begin + 1, begin + 2 * longest)]
    late = [end for end in ends if end - begin >= longest // 2]
    line = text.rfind("\n", begin + longest // 2, begin + longest)
    end = min(late, key=lambda at: abs(at - begin - longest)) if late else line
    return end if end > begin else begin + longest


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The plain text files among these files and in these folders, sorted.

    Raises:
        DataError: A path does not exist, or there is no text file.
    """
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            found.update(file for file in path.rglob("*") if file.is_file() and file.name.endswith(SUFFIXES))
        elif path.is_file():
            found.add(path)
        else:
            raise DataError(f"there is no file or folder {path}")
    if not found:
        raise DataError(
            f"expected text files ({', '.join(SUFFIXES)}) in {', '.join(map(str, paths))}, found none"
        )
    return sorted(found)


def read_files(files: Sequence[Path]) -> Iterator[SourceText]:
    """Read text files as UTF-8, a block at a time, long ones as several documents.

    Raises:
        DataError: A file is binary or in another encoding; the message names it.
    """
    for file in files:
        try:
            for part in cut_stream(_blocks(file)):
                yield SourceText(part)
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise DataError(
                f"expected UTF-8 text in {file}: {error}", remedy="leave it out, or convert it to UTF-8"
            ) from error


def _blocks(file: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
        while data := stream.read(_BLOCK):
            if b"\0" in data:
                raise DataError(f"expected text, found a binary file: {file}")
            yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def files_fingerprint(files: Sequence[Path]) -> str:
    """Digest of names, sizes and times: equal as long as no file was touched."""
    facts = [(str(file), status.st_size, status.st_mtime_ns) for file in files for status in [file.stat()]]
    return hashlib.blake2b(repr(facts).encode("utf-8", "replace"), digest_size=16).hexdigest()
