"""Plain text files as documents, and long texts cut into documents of a size that can be held out.

Formats other than plain text are the business of the index readers, whose text can be handed to
`pretrain` just as well.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from likewise.embedder.corpus_build import SourceText
from likewise.errors import DataError

SUFFIXES = (".txt", ".md", ".rst", ".txt.gz", ".md.gz", ".rst.gz")
# A book of a million characters would be held out whole or not at all.
LONGEST = 20_000
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
        ends = [match.start() for match in _PARAGRAPH.finditer(text, begin + 1, begin + 2 * longest)]
        late = [end for end in ends if end - begin >= longest // 2]
        line = text.rfind("\n", begin + longest // 2, begin + longest)
        end = min(late, key=lambda at: abs(at - begin - longest)) if late else line
        end = end if end > begin else begin + longest
        yield text[begin:end]
        begin = end
    if begin < len(text):
        yield text[begin:]


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
    """Read text files as UTF-8, long ones as several documents.

    Raises:
        DataError: A file is binary or in another encoding; the message names it.
    """
    for file in files:
        content = file.read_bytes()
        try:
            if file.suffix == ".gz":
                content = gzip.decompress(content)
            if b"\0" in content:
                raise DataError(f"expected text, found a binary file: {file}")
            text = content.decode("utf-8-sig")
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise DataError(
                f"expected UTF-8 text in {file}: {error}", remedy="leave it out, or convert it to UTF-8"
            ) from error
        for part in cut_text(text):
            yield SourceText(part)


def files_fingerprint(files: Sequence[Path]) -> str:
    """Digest of names, sizes and times: equal as long as no file was touched."""
    facts = [(str(file), status.st_size, status.st_mtime_ns) for file in files for status in [file.stat()]]
    return hashlib.blake2b(repr(facts).encode("utf-8", "replace"), digest_size=16).hexdigest()
