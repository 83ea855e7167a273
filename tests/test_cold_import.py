"""Start-up stays cheap: what each entry point may import, seen in `sys.modules` of a fresh process.

No times: a busy machine would make them lie. What is not imported costs nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "chardet",
    "faiss",
    "httpx",
    "huggingface_hub",
    "numpy",
    "openvino",
    "pathspec",
    "platformdirs",
    "pypdfium2",
    "scipy",
    "selectolax",
    "sentence_transformers",
    "sqlite3",
    "tokenizers",
    "torch",
    "transformers",
    "yaml",
}
NEVER_IN_A_SEARCH = {"torch", "transformers", "sentence_transformers", "scipy", "pypdfium2", "selectolax"}
# Imported without `likewise.` in front they would be second copies with classes of their own.
BARE = {"cli", "embedder", "index", "retrieval"}

REPORT = """
import sys
try:
    {code}
finally:
    print(",".join(sorted(sys.modules)), file=sys.stderr)
"""


def modules_after(code: str, **options: object) -> set[str]:
    """Modules that a fresh interpreter holds after running some code."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT.format(code=code)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        **options,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.strip().splitlines()[-1].split(","))


def command(*arguments: str) -> str:
    """Code that runs a command and comes back."""
    return f"from likewise.cli.main import cli; cli.main({list(arguments)!r}, standalone_mode=False)"


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("likewise.")}


def test_importing_likewise_imports_nothing_else() -> None:
    modules = modules_after("import likewise")
    assert not modules & HEAVY
    assert ours(modules) == {"likewise.version"}
    assert "click" not in modules


def test_an_error_class_costs_one_module() -> None:
    assert ours(modules_after("from likewise import LikewiseError")) == {
        "likewise.errors",
        "likewise.version",
    }


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["search", "--help"], {"search", "hits", "options", "refine"}),
        (["index", "--help"], {"index", "progress", "options"}),
        (["completion", "bash"], {"completion"}),
    ],
)
def test_help_imports_one_command_and_nothing_heavy(arguments: list[str], loaded: set[str]) -> None:
    modules = modules_after(command(*arguments))
    assert not modules & HEAVY
    shared = {"likewise.cli", "likewise.cli.main", "likewise.errors", "likewise.version"}
    if loaded:
        shared |= {"likewise.cli.output", "likewise.cli.terminal"} if arguments[0] != "completion" else set()
    assert ours(modules) == shared | {f"likewise.cli.{name}" for name in loaded}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "keys.md").write_text("# Keys\n\nRotate the signing key yearly.\n", encoding="utf-8")
    (folder / "金鑰.md").write_text("# 金鑰\n\n簽署金鑰每年輪替一次。\n", encoding="utf-8")
    code = command("index", str(folder), "--encoder", "hash")
    assert not modules_after(code) & {"torch", "transformers", "sentence_transformers"}
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "signing key"],
        ["search", "簽署金鑰", "--mode", "lexical"],
        ["similar", "keys.md"],
        ["context", "signing key"],
        ["ask", "signing key"],
        ["status"],
        ["get", "keys.md:1"],
        ["index"],
    ],
)
def test_using_an_index_imports_no_training_library(arguments: list[str], folder: Path) -> None:
    modules = modules_after(command(*arguments), cwd=folder)
    assert not modules & NEVER_IN_A_SEARCH
    assert not modules & BARE


def test_a_lexical_search_loads_no_encoder(folder: Path) -> None:
    modules = modules_after(command("search", "signing key", "--mode", "lexical"), cwd=folder)
    assert "likewise.embedder.hash_encoder" not in modules
    assert not modules & {"openvino", "tokenizers"}


def test_an_index_without_changes_is_updated_without_encoder_and_readers(folder: Path) -> None:
    modules = modules_after(command("index"), cwd=folder)
    assert not modules & {"openvino", "tokenizers", "faiss"}
    assert "likewise.embedder.hash_encoder" not in modules


def test_no_part_is_imported_under_a_bare_name() -> None:
    """From the repository root `import index` works, so nothing but discipline keeps it from happening."""
    root = Path(__file__).resolve().parents[1]
    names = ["cli.main", "embedder.hash_encoder", "index.index", "retrieval.search", "retrieval.answer"]
    code = "\n    ".join(f"import likewise.{name}" for name in names)
    assert not modules_after(code, cwd=root) & BARE


def test_a_search_with_the_default_encoder_imports_no_training_library(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The first use converts the model, with torch; every later process runs without it."""
    folder = tmp_path_factory.mktemp("default")
    (folder / "keys.md").write_text("# Keys\n\nRotate the signing key yearly.\n", encoding="utf-8")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    modules_after(command("index", str(folder)), env=environment)
    modules = modules_after(command("search", "change the key"), cwd=folder, env=environment)
    assert "openvino" in modules
    assert not modules & NEVER_IN_A_SEARCH
