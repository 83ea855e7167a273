"""The folders that an index is made from, and which documents a sync may touch.

A sync changes only what lies under the sources it was given: indexing one folder never deletes another's
documents. Paths are only compared here; `scan` looks at what is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from likewise.errors import SourceError, UsageError
from likewise.index.keys import document_key
from likewise.index.records import Json


@dataclass(frozen=True, slots=True)
class Source:
    """A folder or file that an index remembers.

    Attributes:
        path: Relative to the base of the index where it is inside (so that both can move together), else
            absolute; with "/".
        include: Globs of which a file must match one; none means all.
        exclude: Globs of what is left out.
    """

    path: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @classmethod
    def at(cls, path: Path, base: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Source:
        """The source for a path on this machine."""
        real, real_base = _real(path), _real(base)
        inside = real.is_relative_to(real_base)
        stored = real.relative_to(real_base) if inside else real
        return cls(stored.as_posix(), tuple(include), tuple(exclude))

    @classmethod
    def from_json(cls, value: Json) -> Source:
        """A source as the catalogue stores it."""
        if not isinstance(value, Mapping):
            raise ValueError(f"expected a source with a path, found {value!r}")
        include, exclude = value.get("include") or [], value.get("exclude") or []
        assert isinstance(include, list) and isinstance(exclude, list)
        return cls(str(value["path"]), tuple(map(str, include)), tuple(map(str, exclude)))

    def to_json(self) -> dict[str, Json]:
        """The form that `from_json` reads."""
        return {"path": self.path, "include": list(self.include), "exclude": list(self.exclude)}

    def location(self, base: Path) -> Path:
        """Where it is on this machine."""
        return _real(base) / self.path


@dataclass(frozen=True, slots=True)
class Job:
    """One walk of a sync.

    Attributes:
        source: What to walk, with its patterns.
        only: Keep to what lies under this path inside the source; None for all of it.
    """

    source: Source
    only: Path | None = None

    def root(self, base: Path) -> Path:
        """What it looks at, on this machine."""
        return self.source.location(base) if self.only is None else self.only


class Scope:
    """What one sync looks at.

    Args:
        jobs: The walks.
        base: Folder that document keys are relative to.

    Attributes:
        jobs: The walks.
    """

    def __init__(self, jobs: Sequence[Job], base: Path) -> None:
        self.jobs = tuple(jobs)
        self._base = _absolute_key(_real(base))
        self._roots = [_absolute_key(job.root(base)) for job in jobs]
        self._limits = [None if job.only is None else _absolute_key(job.only) for job in jobs]

    def covers(self, key: str) -> bool:
        """Whether a document of this key lies under what the sync was given."""
        absolute = self._absolute(key)
        return any(_under(absolute, root) for root in self._roots)

    def wanted(self, job: int, key: str) -> bool:
        """Whether a file found by a walk is to be looked at."""
        limit = self._limits[job]
        return limit is None or _under(self._absolute(key), limit)

    def _absolute(self, key: str) -> str:
        return key if os.path.isabs(key) else f"{self._base}/{key}"


def choose(
    given: Sequence[Path] | None,
    remembered: Sequence[Source],
    *,
    base: Path,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> tuple[list[Source], list[Job]]:
    """Which sources an index has from now on, and which walks a sync makes.

    A path that is a source keeps its patterns unless new ones are given. A path inside a source is looked at
    with that source's patterns and ignore files. Any other path becomes a source. Sources inside a given path
    are walked too, since their documents lie under it.

    Raises:
        UsageError: Nothing is given and nothing remembered, or patterns come without a path.
        SourceError: A source does not exist. Nothing is deleted then.
    """
    if given is None:
        if include or exclude:
            raise UsageError(
                "patterns belong to a source, and none was named",
                remedy="name the folder: likewise index FOLDER --include GLOB",
            )
        if not remembered:
            raise UsageError("nothing to index: no source is remembered", remedy="likewise index FOLDER")
        for source in remembered:
            _require_remembered(source.location(base))
        return list(remembered), [Job(source) for source in remembered]
    sources = {source.path: source for source in remembered}
    jobs: dict[tuple[str, Path | None], Job] = {}
    for path in given:
        require(path)
        source = Source.at(path, base, include, exclude)
        location = source.location(base)
        patterns = bool(include or exclude)
        if source.path in sources:
            sources[source.path] = source if patterns else sources[source.path]
        elif not patterns and (holder := _holder(location, remembered, base)):
            jobs[holder.path, location] = Job(holder, location)
            continue
        else:
            sources[source.path] = source
        for other in list(sources.values()):
            if other.location(base).is_relative_to(location):
                _require_remembered(other.location(base))
                jobs[other.path, None] = Job(other)
    walks = [replace(job, source=sources[job.source.path]) for job in jobs.values()]
    return list(sources.values()), walks


def _holder(location: Path, sources: Sequence[Source], base: Path) -> Source | None:
    """The innermost source that a path lies in."""
    holders = [source for source in sources if location.is_relative_to(source.location(base))]
    return max(holders, key=lambda source: len(source.location(base).parts), default=None)


def require(path: Path) -> None:
    """Refuse a folder or file that was named and does not exist.

    Raises:
        SourceError: It does not.
    """
    if not os.path.lexists(path):
        raise SourceError(
            f"{path} does not exist; nothing was changed", remedy="look whether the name is right"
        )


def _require_remembered(path: Path) -> None:
    if not os.path.lexists(path):
        raise SourceError(
            f"the source {path} does not exist, though the index was made from it; nothing was changed",
            remedy=f"mount or restore it; if it is gone for good: likewise index --forget {path}",
        )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _absolute_key(path: Path) -> str:
    """The key of an absolute path in the eyes of an index that does not hold it."""
    return document_key(path, path / "below").rstrip("/")


def _under(key: str, root: str) -> bool:
    return key == root or key.startswith(root + "/")
