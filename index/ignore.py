"""Which paths a scan leaves out: `.gitignore` and `.likewiseignore` files and patterns from the command line.

Git's semantics: the last matching pattern of the deepest file decides, a folder that is left out is never
entered, so nothing inside can be taken back in. Paths are strings relative to the scanned root, with `/`, and
a `/` at the end for folders. Nothing here lists a folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from likewise.errors import UsageError
from likewise.index.readers.base import ReaderLimits
from likewise.index.readers.fileaccess import load
from likewise.index.records import Skip

# In the order of increasing precedence.
IGNORE_FILES = (".gitignore", ".likewiseignore")
_IGNORE_FILE_LIMITS = ReaderLimits(max_bytes=1 << 20)


@dataclass(frozen=True, slots=True)
class Level:
    """The rules of one folder.

    Attributes:
        spec: The patterns.
        cut: Characters of a path (relative to the root) in front of the part that the patterns match.
        above: Prefix that turns a path relative to the root into one relative to a folder above the root.
    """

    spec: GitIgnoreSpec
    cut: int = 0
    above: str = ""

    def verdict(self, path: str) -> bool | None:
        """True to leave the path out, False to take it, None where no pattern matches."""
        candidate = printable(self.above + path[self.cut :])
        for pattern in reversed(self.spec.patterns):
            if pattern.include is not None and pattern.regex and _names(pattern.regex, candidate):
                return pattern.include
        return None


def printable(path: str) -> str:
    """The path as patterns see it: none can name a line feed, but their regular expressions stop at one."""
    return path.replace("\n", "\ufffd")


def is_ignored(path: str, levels: Sequence[Level]) -> bool:
    """Whether the innermost rule that matches leaves the path out.

    Args:
        path: Relative to the root; a folder ends with "/".
        levels: Outermost first.

    Example:
        >>> levels = [Level(parse_patterns(["*.log", "build/"])), Level(parse_patterns(["!keep.log"]), cut=2)]
        >>> [is_ignored(path, levels) for path in ("a/x.log", "a/keep.log", "a/build/", "a/build")]
        [True, False, True, False]
    """
    for level in reversed(levels):
        verdict = level.verdict(path)
        if verdict is not None:
            return verdict
    return False


def parse_patterns(lines: Sequence[str]) -> GitIgnoreSpec:
    """Patterns of an ignore file; a line that is no pattern is passed over, as git does."""
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_pattern(line)])


def parse_option(option: str, patterns: Sequence[str]) -> GitIgnoreSpec | None:
    """Patterns from the command line, None if there are none.

    Raises:
        UsageError: One of them is no pattern.
    """
    for pattern in patterns:
        if not _is_pattern(pattern) or not pattern.strip():
            raise UsageError(f"{option} {pattern!r} is not a glob", remedy=f"{option} 'docs/**/*.md'")
    return GitIgnoreSpec.from_lines(patterns) if patterns else None


def rules_of(folder: str, names: Sequence[str], *, cut: int = 0, above: str = "") -> Level | None:
    """The rules that a folder holds, None if it holds none.

    Args:
        folder: Its path.
        names: Those of `IGNORE_FILES` that it contains.
        cut: See `Level`.
        above: See `Level`.
    """
    lines: list[str] = []
    for name in IGNORE_FILES:
        if name in names:
            _, data = load(Path(folder, name), _IGNORE_FILE_LIMITS)
            # A link, a FIFO or an unreadable file of that name rules nothing, as in git.
            if not isinstance(data, Skip):
                lines.extend(data.decode("utf-8-sig", "surrogateescape").splitlines())
    return Level(parse_patterns(lines), cut, above) if lines else None


def rules_above(root: str) -> list[Level]:
    """Rules of the git repository that encloses the root, outermost first; none outside of a repository.

    None either if they leave out the root itself: who names an ignored folder means it.
    """
    levels: list[Level] = []
    folder, above = root, ""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent, name = os.path.split(folder)
        if not name:
            return []  # reached the top without finding a repository
        folder, above = parent, f"{name}/{above}"
        names = [name for name in IGNORE_FILES if os.path.lexists(os.path.join(folder, name))]
        if names and (level := rules_of(folder, names, above=above)):
            levels.insert(0, level)
    return [] if is_ignored("", levels) else levels


def _names(pattern: re.Pattern[str], path: str) -> bool:
    """Whether a pattern names this very path, and not only a folder above it.

    `GitIgnoreSpec` answers for whole paths. That is not enough to prune folders by: `a/**` must not leave out
    `a`, or `!a/keep` could not take anything back, and a folder that one pattern left out and another took
    back must not be left out once more with each of its files.
    """
    match = pattern.search(path)
    if match is None:
        return False
    is_folder = path.endswith("/")
    # Patterns are translated with a group of this name for the slash behind what they name.
    if "ps_d" in pattern.groupindex and match["ps_d"] is not None:
        return is_folder and (match.end("ps_d") == len(path) or bool(pattern.search(path, len(path) - 1)))
    return not is_folder or bool(pattern.search(path[:-1]))


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
