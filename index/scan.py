"""Find the files of a source: what is there, not what is in it.

The walk never follows a link, never lists a folder that is ignored, never opens anything but ignore files,
and does not recurse, so it ends on every tree. What it leaves out for a reason that a person should know
comes as a `ScanNote`; what an ignore rule or a dot leaves out comes as nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from likewise.errors import SourceError
from likewise.index.ignore import (
    IGNORE_FILES,
    Level,
    is_ignored,
    parse_option,
    printable,
    rules_above,
    rules_of,
)
from likewise.index.keys import document_key, readable
from likewise.index.readers.fileaccess import kind_of

__all__ = ["FileEntry", "ScanNote", "check_root", "scan"]

_JUNCTION = 0xA0000003  # IO_REPARSE_TAG_MOUNT_POINT


@dataclass(frozen=True, slots=True)
class FileEntry:
    r"""A regular file that a scan found.

    Attributes:
        key: Its name in the index: the path relative to the base where it is inside, else the absolute path;
            always with "/". Bytes of the name that are not UTF-8 are written as `\xff`.
        path: Where it is.
        size: Bytes.
        mtime_ns: Modification time in nanoseconds since the epoch.
    """

    key: str
    path: Path
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class ScanNote:
    """Something that a scan left out.

    Attributes:
        key: As in `FileEntry`; a folder ends with "/".
        path: Where it is.
        reason: Why, for a person.
    """

    key: str
    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    key: str  # with "/" at the end, "" for the base itself
    relative: str  # to the root, with "/" at the end, "" for the root itself
    levels: tuple[Level, ...]


def check_root(root: Path) -> None:
    """Refuse folders that hold everything: the root of a drive, the home folder and what it stands in.

    Raises:
        SourceError: It is one of them.
    """
    real = Path(os.path.realpath(root))
    home = Path(os.path.realpath(os.path.expanduser("~")))
    if real == Path(real.anchor):
        found = f"{real} is a whole drive"
    elif real == home:
        found = f"{real} is your home folder"
    elif real in home.parents:
        found = f"{real} holds your home folder"
    else:
        return
    raise SourceError(
        f"expected a folder of documents, but {found}",
        remedy="name a folder inside it, or repeat the command with --force",
    )


def scan(
    root: Path,
    *,
    base: Path,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    index_folder: Path | None = None,
    force: bool = False,
) -> Iterator[FileEntry | ScanNote]:
    """Files of a source, in a fixed order.

    Hidden files and folders, what `.gitignore` and `.likewiseignore` files leave out (also those of the git
    repository around the root), and the index folder are passed over. A root that is a file is taken whatever
    the patterns say. Arguments are checked at once, the walk happens while the result is consumed.

    Args:
        root: A folder or a file.
        base: The folder that keys are relative to.
        include: Globs as in `.gitignore`, relative to the root; if given, a file must match one.
        exclude: Globs of files and folders to leave out, relative to the root; they outrank ignore files.
        index_folder: The index, which must not index itself.
        force: Scan even a whole drive or the home folder.

    Raises:
        SourceError: The root is missing, unreadable, neither file nor folder, or refused.
        UsageError: A glob is malformed.
    """
    wanted, unwanted = parse_option("--include", include), parse_option("--exclude", exclude)
    # Resolved once, so that keys do not depend on how the root was spelled and a link to it is no link
    # inside it.
    top, real_base = os.path.realpath(root), Path(os.path.realpath(base))
    try:
        status = os.stat(top)
        if stat.S_ISDIR(status.st_mode):
            os.scandir(top).close()
    except OSError as error:
        raise SourceError(
            f"expected a folder or a file to index, but {root} cannot be read: {error.strerror or error}",
            remedy=f"ls -ld {root}",
        ) from error
    key = document_key(Path(top), real_base)
    if stat.S_ISREG(status.st_mode):
        return iter([FileEntry(key, Path(top), status.st_size, status.st_mtime_ns)])
    if not stat.S_ISDIR(status.st_mode):
        raise SourceError(f"expected a folder or a file to index, but {root} is neither")
    if not force:
        check_root(root)
    walk = _Walk(
        root=top,
        index_folder=os.path.realpath(index_folder) if index_folder is not None else "",
        include=wanted,
        exclude=Level(unwanted) if unwanted is not None else None,
    )
    prefix = "" if key == "." else key.rstrip("/") + "/"
    return walk.entries(_Folder(top, prefix, "", tuple(rules_above(top))))


@dataclass(slots=True)
class _Walk:
    root: str
    index_folder: str
    include: GitIgnoreSpec | None
    exclude: Level | None

    def entries(self, top: _Folder) -> Iterator[FileEntry | ScanNote]:
        """Depth first; the names of a folder in the order of their code points."""
        seen: set[tuple[int, int]] = set()
        folders = [top]
        while folders:
            folder = folders.pop()
            try:
                # The listing is closed before anything below is opened: a deep tree must not use up
                # descriptors.
                with os.scandir(folder.path) as listing:
                    found = sorted(listing, key=lambda entry: entry.name)
                if _visited(folder.path, seen):
                    yield self._note(folder, "is a folder that was reached before by another path")
                    continue
            except OSError as error:
                if folder is top:
                    # A note would say that all else is well, and everything below would count as deleted.
                    raise SourceError(f"{folder.path} can no longer be listed: {_sentence(error)}") from error
                yield self._note(folder, _sentence(error))
                continue
            names = [entry.name for entry in found if entry.name in IGNORE_FILES]
            rules = rules_of(folder.path, names, cut=len(folder.relative)) if names else None
            levels = (*folder.levels, rules) if rules else folder.levels
            below: list[_Folder] = []
            for entry in found:
                item = self._judge(entry, folder, levels)
                if isinstance(item, _Folder):
                    below.append(item)
                elif item is not None:
                    yield item
            folders.extend(reversed(below))

    def _judge(
        self, entry: os.DirEntry[str], folder: _Folder, levels: tuple[Level, ...]
    ) -> FileEntry | ScanNote | _Folder | None:
        if entry.name.startswith("."):
            return None
        path = f"{folder.path.rstrip(os.sep)}{os.sep}{entry.name}"
        relative, key = folder.relative + entry.name, folder.key + readable(entry.name)
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None  # gone since the listing: as if it had never been there
        except OSError as error:
            return ScanNote(key, Path(path), _sentence(error))
        if _is_hidden(status):
            return None
        is_folder = stat.S_ISDIR(status.st_mode) and not _is_junction(status)
        if is_folder and path == self.index_folder:
            return None
        if self._left_out(relative + "/" if is_folder else relative, levels):
            return None
        if is_folder:
            return _Folder(path, key + "/", relative + "/", levels)
        if self.include is not None and not self.include.match_file(printable(relative)):
            return None
        if stat.S_ISREG(status.st_mode):
            return FileEntry(key, Path(path), status.st_size, status.st_mtime_ns)
        reason = self._why_no_file(path, status)
        return ScanNote(key, Path(path), reason) if reason else None

    def _left_out(self, relative: str, levels: tuple[Level, ...]) -> bool:
        if self.exclude is not None and self.exclude.verdict(relative):
            return True
        return bool(levels) and is_ignored(relative, levels)

    def _why_no_file(self, path: str, status: os.stat_result) -> str:
        """Remark on what is neither file nor folder, "" for a link to something that is found anyway."""
        if not (stat.S_ISLNK(status.st_mode) or _is_junction(status)):
            return f"is {kind_of(status.st_mode)}, not a regular file"
        try:
            target = os.path.realpath(path, strict=True)
        except FileNotFoundError:
            return "is a link that leads nowhere"
        except OSError:  # ELOOP, or no permission on the way
            return "is a link that cannot be followed: it leads back to itself or is not permitted"
        if path == target or path.startswith(target.rstrip(os.sep) + os.sep):
            return "is a link back to a folder that holds it"
        if target == self.root or target.startswith(self.root.rstrip(os.sep) + os.sep):
            return ""
        return "is a link that leaves the source; name its target as a source of its own to index it"

    def _note(self, folder: _Folder, reason: str) -> ScanNote:
        return ScanNote(folder.key, Path(folder.path), reason)


def _visited(path: str, seen: set[tuple[int, int]]) -> bool:
    """Whether the folder itself was listed before, through a bind mount for one; links are never followed."""
    status = os.stat(path)
    identity = (status.st_dev, status.st_ino)
    if status.st_ino == 0 or identity not in seen:  # 0: a file system that does not number its files
        seen.add(identity)
        return False
    return True


def _is_hidden(status: os.stat_result) -> bool:
    """The hidden flag of Windows and macOS; names that begin with a dot are dealt with before."""
    attributes = getattr(status, "st_file_attributes", 0)
    flags = getattr(status, "st_flags", 0)
    return bool(attributes & stat.FILE_ATTRIBUTE_HIDDEN or flags & getattr(stat, "UF_HIDDEN", 0))


def _is_junction(status: os.stat_result) -> bool:
    """A Windows junction: a folder to `stat`, a link in truth."""
    return bool(getattr(status, "st_reparse_tag", 0) == _JUNCTION)


def _sentence(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "permission denied"
    return f"cannot be read: {error.strerror or error}"
