"""Every error that likewise raises on purpose.

    LikewiseError
    ├── UsageError                  a request that makes no sense (exit status 2)
    │   ├── QueryError              a query that cannot be searched
    │   └── FilterError             a filter that cannot be understood
    ├── MissingExtra                an optional dependency is not installed
    ├── EncoderError                a model cannot be found, read or run
    │   ├── EncoderNotFound
    │   └── ChecksumMismatch        weights differ from the published ones
    ├── IndexFolderError            an index folder cannot be opened or written
    │   ├── IndexNotFound
    │   ├── IndexLocked             another process is writing
    │   ├── IndexVersionError       made by a newer likewise
    │   └── EncoderMismatch         vectors of another encoder
    ├── SourceError                 a folder to index is missing, unreadable or refused
    ├── ReadError                   one document cannot be read (it becomes a state, not a failure of the run)
    ├── GeneratorError              a text generator is missing, unreachable or answers nonsense
    └── TrainingError               a training run cannot start or must stop
        ├── DataError               training data that is malformed or too small
        └── CheckpointError         a checkpoint that cannot be written, read or continued

A message says what was expected, what was found, and how to mend it. This module imports nothing.
"""

from __future__ import annotations


class LikewiseError(Exception):
    """Base of all errors that likewise raises on purpose.

    Args:
        message: What went wrong, with what was expected and what was found.
        remedy: The command or the change that mends it, shown on a line of its own.

    Example:
        >>> print(IndexNotFound("no index in /tmp/notes", remedy="likewise index /tmp/notes"))
        no index in /tmp/notes
          try: likewise index /tmp/notes
    """

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n  try: {self.remedy}"


class UsageError(LikewiseError):
    """A request that makes no sense; the command line exits with status 2."""


class QueryError(UsageError):
    """A query that cannot be searched: empty, or longer than the limit."""


class FilterError(UsageError):
    """A filter expression that cannot be understood."""


class MissingExtra(LikewiseError):
    """An optional dependency is not installed; the remedy is the install command."""


class EncoderError(LikewiseError):
    """A model cannot be found, read or run."""


class EncoderNotFound(EncoderError):
    """No model under this name or path."""


class ChecksumMismatch(EncoderError):
    """The weights on disk differ from the published ones."""


class IndexFolderError(LikewiseError):
    """An index folder cannot be opened or written."""


class IndexNotFound(IndexFolderError):
    """No index here or in a parent folder."""


class IndexLocked(IndexFolderError):
    """Another process is writing to the index."""


class IndexVersionError(IndexFolderError):
    """The index was made by a newer version of likewise."""


class EncoderMismatch(IndexFolderError):
    """The index holds the vectors of another encoder."""


class SourceError(LikewiseError):
    """A folder to index is missing, unreadable or refused."""


class ReadError(LikewiseError):
    """One document cannot be read; it ends in a state and the run goes on."""


class GeneratorError(LikewiseError):
    """A text generator is missing, unreachable, or does not answer as its protocol says."""


class TrainingError(LikewiseError):
    """A training run cannot start or must stop."""


class DataError(TrainingError):
    """Training data that is malformed, mislabelled or too small."""


class CheckpointError(TrainingError):
    """A checkpoint that cannot be written, read or continued."""
