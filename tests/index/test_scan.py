from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.errors import SourceError, UsageError
from likewise.index import scan as module
from likewise.index.keys import document_key
from likewise.index.scan import FileEntry, ScanNote, check_root, scan

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX file system")


def tree(base: Path, *names: str) -> Path:
    for name in names:
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return base


def keys(root: Path, **options: object) -> list[str]:
    options.setdefault("base", root)
    return [item.key for item in scan(root, **options) if isinstance(item, FileEntry)]  # type: ignore[arg-type]


def notes(root: Path, **options: object) -> dict[str, str]:
    options.setdefault("base", root)
    found = scan(root, **options)  # type: ignore[arg-type]
    return {item.key: item.reason for item in found if isinstance(item, ScanNote)}


def test_files_come_with_size_and_time_in_a_fixed_order(tmp_path: Path) -> None:
    tree(tmp_path, "b.md", "a/z.md", "a/b/c.md", "a.md", "B.md", "金鑰.md")
    found = list(scan(tmp_path, base=tmp_path))
    assert [item.key for item in found] == ["B.md", "a.md", "b.md", "金鑰.md", "a/z.md", "a/b/c.md"]
    status = (tmp_path / "a.md").stat()
    assert found[1] == FileEntry("a.md", tmp_path / "a.md", status.st_size, status.st_mtime_ns)


def test_keys_are_relative_to_the_base_where_they_can_be(tmp_path: Path) -> None:
    tree(tmp_path, "base/in/a.md", "out/b.md")
    assert keys(tmp_path / "base/in", base=tmp_path / "base") == ["in/a.md"]
    assert keys(tmp_path / "out", base=tmp_path / "base") == [(tmp_path / "out/b.md").resolve().as_posix()]
    assert keys(tmp_path / "out/b.md", base=tmp_path / "out") == ["b.md"]


def test_a_relative_root_gives_the_same_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "docs/a.md")
    monkeypatch.chdir(tmp_path / "docs")
    assert keys(Path("."), base=tmp_path) == keys(Path("../docs"), base=tmp_path) == ["docs/a.md"]


def test_hidden_files_and_the_index_are_passed_over(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", ".b.md", ".git/c.md", "index/d.md", "sub/.e/f.md", "sub/index/g.md")
    assert keys(tmp_path, index_folder=tmp_path / "index") == ["a.md", "sub/index/g.md"]


def test_a_hidden_root_is_meant(tmp_path: Path) -> None:
    assert keys(tree(tmp_path / ".notes", "a.md")) == ["a.md"]


def test_ignore_files_at_every_level(tmp_path: Path) -> None:
    tree(
        tmp_path, "keep.md", "drop.log", "build/a.md", "sub/build/b.md", "sub/deep/important.log",
        "sub/only/here.tmp", "sub/only/top.md", "top.md", "sub/top.md",
    )  # fmt: skip
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n/top.md\n# a comment\n\n")
    (tmp_path / "sub/.gitignore").write_text("!important.log\n")
    (tmp_path / "sub/only/.likewiseignore").write_text("*\n!*.md\n")
    assert keys(tmp_path) == ["keep.md", "sub/top.md", "sub/deep/important.log", "sub/only/top.md"]


def test_likewiseignore_outranks_gitignore_beside_it(tmp_path: Path) -> None:
    tree(tmp_path, "a.csv", "b.csv")
    (tmp_path / ".gitignore").write_text("*.csv\n")
    (tmp_path / ".likewiseignore").write_text("!a.csv\n")
    assert keys(tmp_path) == ["a.csv"]


def test_rules_of_the_enclosing_repository_hold(tmp_path: Path) -> None:
    tree(tmp_path, "docs/a.md", "docs/b.tmp", "docs/private/c.md")
    (tmp_path / ".gitignore").write_text("*.tmp\n/docs/private\n")
    assert keys(tmp_path / "docs") == ["a.md", "b.tmp", "private/c.md"]
    (tmp_path / ".git").mkdir()
    assert keys(tmp_path / "docs") == ["a.md"]


def test_an_ignored_folder_that_is_named_is_meant(tmp_path: Path) -> None:
    tree(tmp_path, "build/a.md", "build/b.tmp")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n*.tmp\n")
    assert keys(tmp_path) == []
    assert keys(tmp_path / "build") == ["a.md", "b.tmp"]


def test_an_ignored_folder_is_never_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "node_modules/x/a.md", "docs/b.md")
    (tmp_path / ".gitignore").write_text("node_modules/\n")
    listed: list[str] = []
    scandir = os.scandir

    def record(path: str) -> object:
        listed.append(os.path.basename(path))
        return scandir(path)

    monkeypatch.setattr(module.os, "scandir", record)
    assert keys(tmp_path) == ["docs/b.md"]
    assert "node_modules" not in listed
    assert "docs" in listed


def test_an_ignore_file_that_is_broken_or_strange_does_no_harm(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "b.log", "sub/c.md")
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbf!\n\xff\xfe\n[\n*.log\r\n")
    (tmp_path / "sub/.gitignore").mkdir()
    assert keys(tmp_path) == ["a.md", "sub/c.md"]


@POSIX
def test_a_fifo_for_an_ignore_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tree(tmp_path, "a.md") / ".gitignore")
    assert keys(tmp_path) == ["a.md"]


def test_include_and_exclude(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "b.txt", "docs/c.md", "docs/old/d.md", "docs/e.rst")
    assert keys(tmp_path, include=["*.md"]) == ["a.md", "docs/c.md", "docs/old/d.md"]
    assert keys(tmp_path, include=["docs/"]) == ["docs/c.md", "docs/e.rst", "docs/old/d.md"]
    assert keys(tmp_path, include=["*.md", "*.rst"], exclude=["old/", "a.*"]) == ["docs/c.md", "docs/e.rst"]
    (tmp_path / ".gitignore").write_text("!old/\n")
    assert keys(tmp_path, exclude=["old/"]) == ["a.md", "b.txt", "docs/c.md", "docs/e.rst"]


def test_a_file_that_is_named_is_taken_whatever_the_patterns_say(tmp_path: Path) -> None:
    tree(tmp_path, "a.log", ".hidden")
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert keys(tmp_path / "a.log", base=tmp_path, include=["*.md"]) == ["a.log"]
    assert keys(tmp_path / ".hidden", base=tmp_path) == [".hidden"]


@pytest.mark.parametrize("pattern", ["", " ", "!"])
def test_a_glob_that_is_none(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match="is not a glob"):
        scan(tmp_path, base=tmp_path, exclude=[pattern])


@POSIX
def test_links_are_never_followed(tmp_path: Path) -> None:
    tree(tmp_path, "in/a.md", "in/sub/b.md", "out/secret.md")
    root = tmp_path / "in"
    (root / "again.md").symlink_to("a.md")
    (root / "again").symlink_to("sub")
    (root / "loop").symlink_to(".")
    (root / "sub/up").symlink_to("..")
    (root / "self").symlink_to("self")
    (root / "leaves").symlink_to("../out")
    (root / "leaves.md").symlink_to("../out/secret.md")
    (root / "nowhere").symlink_to("missing")
    (root / "sibling").symlink_to("../in-other")
    tree(tmp_path, "in-other/x.md")
    assert keys(root) == ["a.md", "sub/b.md"]
    found = notes(root)
    assert set(found) == {"loop", "sub/up", "self", "leaves", "leaves.md", "nowhere", "sibling"}
    assert "back to a folder that holds it" in found["loop"] and "back to a folder" in found["sub/up"]
    assert "leads back to itself" in found["self"]
    assert "leaves the source" in found["leaves"] and "leaves the source" in found["leaves.md"]
    assert "leaves the source" in found["sibling"]
    assert "leads nowhere" in found["nowhere"]


@POSIX
def test_a_root_that_is_a_link_is_its_target(tmp_path: Path) -> None:
    tree(tmp_path, "real/a.md")
    (tmp_path / "link").symlink_to("real")
    assert keys(tmp_path / "link", base=tmp_path) == ["real/a.md"]


@POSIX
def test_special_files_are_noted(tmp_path: Path) -> None:
    tree(tmp_path, "a.md")
    os.mkfifo(tmp_path / "fifo.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket.md"))
    assert keys(tmp_path) == ["a.md"]
    assert notes(tmp_path) == {
        "fifo.md": "is a FIFO, not a regular file",
        "socket.md": "is a socket, not a regular file",
    }


def test_a_folder_that_cannot_be_listed_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a.md", "closed/b.md", "open/c.md")
    refuse_listing(monkeypatch, tmp_path / "closed")
    assert keys(tmp_path) == ["a.md", "open/c.md"]
    assert notes(tmp_path) == {"closed/": "permission denied"}


def test_a_root_that_stops_being_listable_is_no_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = scan(tree(tmp_path, "a.md"), base=tmp_path)
    refuse_listing(monkeypatch, tmp_path)
    with pytest.raises(SourceError, match="can no longer be listed: permission denied"):
        list(found)


def refuse_listing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path == str(folder):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(module.os, "scandir", refuse)


@POSIX
def test_names_with_a_line_feed_or_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    for name in (b"two\nlines.md", b"bad\xff.md", b"back\\slash.md", b"a\nb\xfe/c.log"):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"x")
    found = {item.key: item for item in scan(tmp_path, base=tmp_path) if isinstance(item, FileEntry)}
    assert set(found) == {"two\nlines.md", "bad\\xff.md", "back\\slash.md", "a\nb\\xfe/c.log"}
    assert found["bad\\xff.md"].path.read_bytes() == b"x"
    (tmp_path / ".gitignore").write_text("two?lines.md\n*.log\n")
    assert set(keys(tmp_path)) == {"bad\\xff.md", "back\\slash.md"}


@POSIX
def test_a_thousand_levels(tmp_path: Path) -> None:
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        for _ in range(1000):
            os.mkdir("d")
            os.chdir("d")
        Path("a.md").write_text("x")
        found = keys(tmp_path)
    finally:
        # Not left to the fixture: removing such a tree recursively needs more frames than there are.
        os.chdir(tmp_path)
        path = Path("/".join("d" * 1000))
        (path / "a.md").unlink(missing_ok=True)
        while path != Path("."):
            path.rmdir()
            path = path.parent
        os.chdir(here)
    assert found == ["d/" * 1000 + "a.md"]


def test_ten_thousand_files(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / f"{folder:02}").mkdir()
        for number in range(100):
            (tmp_path / f"{folder:02}" / f"{number:02}.md").touch()
    found = keys(tmp_path)
    assert found == [f"{folder:02}/{number:02}.md" for folder in range(100) for number in range(100)]


def test_an_empty_folder(tmp_path: Path) -> None:
    assert list(scan(tmp_path, base=tmp_path)) == []


def test_a_missing_source(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="missing cannot be read: No such file") as caught:
        scan(tmp_path / "missing", base=tmp_path)
    assert caught.value.remedy


@POSIX
def test_a_source_that_is_neither_folder_nor_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SourceError, match="is neither"):
        scan(tmp_path / "fifo", base=tmp_path)


def test_whole_drives_and_the_home_folder_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / "ann"
    tree(home, "a.md", "docs/b.md")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    for root in (Path(home.anchor), home, home.parent, tmp_path):
        with pytest.raises(SourceError, match="expected a folder of documents, but") as caught:
            scan(root, base=root)
        assert caught.value.remedy is not None
        assert "--force" in caught.value.remedy
    check_root(home / "docs")
    assert keys(home / "docs") == ["b.md"]
    assert keys(home, force=True) == ["a.md", "docs/b.md"]
    assert keys(home / "a.md", base=home) == ["a.md"]


def test_a_file_that_vanishes_during_the_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a.md", "sub/b.md")
    walk = scan(tmp_path, base=tmp_path)
    assert next(walk).key == "a.md"
    (tmp_path / "sub/b.md").unlink()
    assert list(walk) == []


def test_keys_of_windows_paths_have_slashes() -> None:
    assert document_key(Path("/a/b") / "c" / "d.md", Path("/a/b")) == "c/d.md"


NAMES = st.sampled_from(["a", "b", "ab", "a.md", "b.log", "build", "x y", "金鑰"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
# Not among them: `a/**/`, which pathspec takes for `a/` and git for the folders inside of `a`.
BODIES = st.sampled_from(
    ["a", "b*", "*.md", "a/b", "*", "build", "a/**/b", "?", "[ab]", "x\\ y", "金*", "ab/*"]
)
PATTERNS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "/", "**/"]),
    st.builds("{}{}".format, BODIES, st.sampled_from(["", "/"])) | st.just("a/**"),
)


def has_git() -> bool:
    try:
        return subprocess.run(["git", "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not has_git(), reason="compares with git")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    paths=st.lists(PATHS, min_size=1, max_size=8),
    rules=st.dictionaries(
        st.sampled_from(["", "a/", "ab/", "build/"]), st.lists(PATTERNS, max_size=4), max_size=3
    ),
)
def test_the_same_files_are_left_out_as_by_git(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], rules: dict[str, list[str]]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    for path in paths:
        # A name may be wanted as a file by one path and as a folder by another: the first one has it.
        try:
            tree(root, path)
        except OSError:
            continue
    for folder, patterns in rules.items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_text("\n".join(patterns) + "\n", encoding="utf-8")
    git: Callable[..., subprocess.CompletedProcess[bytes]] = subprocess.run
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    git(["git", "init", "-q"], cwd=root, check=True, env=environment)
    listed = git(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        env=environment,
    ).stdout
    expected = {os.fsdecode(name) for name in listed.split(b"\0") if name} - {
        f"{folder}.gitignore" for folder in rules
    }
    assert set(keys(root)) == expected
