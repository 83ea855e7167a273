"""What is installed: every package, under `likewise` only, with its type marker."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("embedder", "index", "retrieval", "cli")


def settings() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]  # type: ignore[no-any-return]


def packages_on_disk() -> set[str]:
    """Dotted names of all folders with an `__init__.py`, as they are imported."""
    found = {"likewise"}
    for part in PARTS:
        for file in (ROOT / part).rglob("__init__.py"):
            if "__pycache__" not in file.parts:
                found.add("likewise." + ".".join(file.parent.relative_to(ROOT).parts))
    return found


def modules_on_disk() -> set[str]:
    """Paths of all modules inside the wheel."""
    found = {f"likewise/{file.name}" for file in (ROOT / "likewise").glob("*.py")}
    for part in PARTS:
        found |= {
            "likewise/" + file.relative_to(ROOT).as_posix()
            for file in (ROOT / part).rglob("*.py")
            if "__pycache__" not in file.parts
        }
    return found


def test_the_version_is_the_same_in_code_and_metadata() -> None:
    from likewise import __version__

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__


def test_pyproject_lists_every_package_that_is_on_disk() -> None:
    listed = settings()["packages"]
    assert isinstance(listed, list)
    assert len(listed) == len(set(listed))
    assert set(listed) == packages_on_disk()


def test_every_folder_with_modules_is_a_package() -> None:
    for part in PARTS:
        for file in (ROOT / part).rglob("*.py"):
            assert (file.parent / "__init__.py").is_file(), file


def test_the_parts_are_mapped_below_likewise() -> None:
    expected = {"likewise": "likewise", **{f"likewise.{part}": part for part in PARTS}}
    assert settings()["package-dir"] == expected


@pytest.mark.parametrize("part", PARTS)
def test_the_links_are_relative(part: str) -> None:
    link = ROOT / "likewise" / part
    if not link.is_symlink():
        pytest.skip("this checkout has files in place of links (core.symlinks=false)")
    assert link.readlink() == Path("..") / part


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a source distribution, offline, away from the checkout."""
    pytest.importorskip("build", reason="the wheel is built with the `build` package")
    work = tmp_path_factory.mktemp("wheel")
    tree = work / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    ignored = shutil.ignore_patterns("__pycache__", *PARTS)
    shutil.copytree(ROOT / "likewise", tree / "likewise", ignore=ignored)
    for part in PARTS:
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        (tree / "likewise" / part).symlink_to(Path("..") / part, target_is_directory=True)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(work / "dist"), str(tree)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (built,) = (work / "dist").glob("*.whl")
    return built


def test_the_wheel_holds_every_module_once(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert {name for name in names if name.endswith(".py")} == modules_on_disk()


def test_the_wheel_has_the_type_marker_and_no_generic_names(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "likewise/py.typed" in names
    resources = {
        "likewise/" + file.relative_to(ROOT).as_posix()
        for file in (ROOT / "embedder" / "growth" / "resources").iterdir()
    }
    assert len(resources) == 3, "the Chinese extension and whose texts it is from"
    assert resources <= set(names)
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"likewise"}
    (info,) = (top for top in tops if top.endswith(".dist-info"))
    with zipfile.ZipFile(wheel) as archive:
        assert "likewise = likewise.cli.main:main" in archive.read(f"{info}/entry_points.txt").decode()
        assert archive.read(f"{info}/top_level.txt").decode().split() == ["likewise"]
        assert f"{info}/licenses/LICENSE" in names


def test_the_wheel_runs_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    # -P: the working directory is not searched; the extracted wheel comes before the editable install.
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r});"
        "import likewise.cli.main as m; print(m.__file__);"
        "from likewise import HashEncoder; print(HashEncoder().dimension)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    place, dimension = done.stdout.split()
    assert Path(place).is_relative_to(tmp_path)
    assert dimension == "64"
