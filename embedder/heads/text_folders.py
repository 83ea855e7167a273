"""Texts in folders that are named after their label: `pos/1.txt`, `neg/1.txt`, as published review sets ship.

Nothing here knows what the labels mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from likewise.embedder.tables import SPLITS, Row, Table, read_text
from likewise.errors import DataError

# What sets call the folder of the texts that have no label.
_UNLABELLED = frozenset({"unsup", "unsupervised", "unlabeled", "unlabelled"})


def is_text_folder(folder: Path) -> bool:
    """Whether texts of at least one label stand in a folder."""
    return any(True for _ in _labels(folder))


def text_folder_splits(folder: Path) -> dict[str, Path]:
    """The folders of a data set that are named after its parts and hold texts by label.

    Args:
        folder: Such as `aclImdb`, with `train/pos`, `train/neg`, `test/pos` and `test/neg`.

    Returns:
        Folders by "train", "dev" and "test", as far as there is one.
    """
    found: dict[str, Path] = {}
    folders = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    for part, names in SPLITS.items():
        for path in folders:
            if path.name.lower() in names and is_text_folder(path):
                found.setdefault(part, path)
    return found


def read_text_folder(folder: Path) -> tuple[Table, list[str]]:
    r"""Read the texts of a folder.

    Args:
        folder: With a folder of `.txt` files, UTF-8, for each label.

    Returns:
        A table with the columns text and label, and what a person should know.

    Raises:
        DataError: There are no such folders, or a file cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as temporary:
        ...     for label, text in (("neg", "Dull."), ("pos", "A joy.")):
        ...         (Path(temporary) / label).mkdir()
        ...         _ = (Path(temporary) / label / "1.txt").write_text(text, "utf-8")
        ...     read_text_folder(Path(temporary))[0].rows
        ({'text': 'Dull.', 'label': 'neg'}, {'text': 'A joy.', 'label': 'pos'})
    """
    rows: list[Row] = []
    for label in _labels(folder):
        rows += [{"text": read_text(path), "label": label.name} for path in _texts(label)]
    if not rows:
        raise DataError(
            f"expected a folder of .txt files for each label in {folder}, found none",
            remedy="such as train/pos/1.txt and train/neg/1.txt",
        )
    left_out = [path.name for path in sorted(folder.iterdir()) if path.name.lower() in _UNLABELLED]
    notes = [f"the texts in {name} have no label and are left out" for name in left_out]
    return Table(str(folder), ("text", "label"), tuple(rows)), notes


def _labels(folder: Path) -> Iterator[Path]:
    """Folders that hold texts, by name."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name.lower() not in _UNLABELLED and any(True for _ in _texts(path)):
            yield path


def _texts(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() == ".txt" and path.is_file():
            yield path
