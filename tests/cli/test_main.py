"""The edge: exit statuses, error messages, pipes that close, and what start-up imports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from likewise import __version__
from likewise.cli.main import COMMANDS, cli, main
from likewise.errors import IndexLocked, LikewiseError, QueryError

Run = Callable[..., Result]


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "likewise", *arguments], capture_output=True, **options)  # type: ignore[call-overload,no-any-return]


def test_version() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"likewise {__version__}\n")


def test_python_m_likewise_is_the_command() -> None:
    done = process("--version")
    assert (done.returncode, done.stdout.decode().split()) == (0, ["likewise", __version__])


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"], prog_name="likewise")
    assert result.exit_code == 0, result.output
    assert "Examples:" in result.stdout
    assert result.stderr == ""


def test_every_default_encoder_is_the_one_of_search() -> None:
    from likewise.embedder.resolve import DEFAULT_ENCODER

    named = {}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None  # for the type checker: all names are of commands
        for each in command.commands.values() if isinstance(command, click.Group) else [command]:
            for option in each.params:
                said = re.search(r"\[default: (all-MiniLM\S*)\]", getattr(option, "help", "") or "")
                default = said[1] if said else option.default
                if isinstance(default, str) and default.startswith("all-MiniLM"):
                    named[f"{name} {each.name} {option.name}"] = default
    assert len(named) > 8 and set(named.values()) == {DEFAULT_ENCODER}, named


def test_the_list_of_commands_is_complete() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    for name, place in COMMANDS.items():
        assert f"  {name} " in result.stdout
        assert place.short_help in " ".join(result.stdout.split())


def test_an_unknown_command_gets_a_suggestion(run: Run) -> None:
    result = run("serch", "key")
    assert result.exit_code == 2
    assert "No such command 'serch'. Did you mean 'search'?" in result.stderr
    assert result.stdout == ""


def test_an_unknown_option_is_wrong_usage(run: Run) -> None:
    assert run("search", "key", "--kk", "3").exit_code == 2


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> Result:
    def broken(target: str, **options: object) -> None:
        raise error

    command = click.Command("get", callback=broken, params=[click.Argument(["target"])])
    monkeypatch.setattr(type(cli), "get_command", lambda self, ctx, name: command)
    return CliRunner().invoke(cli, ["get", "1"])


def test_an_error_shows_its_remedy_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fail_with(IndexLocked("process 7 is writing", remedy="wait for it"), monkeypatch)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: process 7 is writing\n  try: wait for it\n"


def test_an_error_without_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fail_with(LikewiseError("no"), monkeypatch)
    assert (result.exit_code, result.stderr) == (1, "error: no\n")


def test_wrong_usage_has_status_2(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fail_with(QueryError("empty"), monkeypatch).exit_code == 2


def test_errors_do_not_drive_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fail_with(LikewiseError("bad name \x1b[31m"), monkeypatch)
    assert result.stderr == "error: bad name \\x1b[31m\n"


def test_an_unforeseen_error_says_how_to_get_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIKEWISE_DEBUG", raising=False)
    result = fail_with(KeyError("oops"), monkeypatch)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: unexpected KeyError: 'oops'\n  try: set LIKEWISE_DEBUG=1")


def test_an_unforeseen_error_is_raised_for_developers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_DEBUG", "1")
    assert isinstance(fail_with(KeyError("oops"), monkeypatch).exception, KeyError)


def test_an_unforeseen_os_error_is_no_closed_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIKEWISE_DEBUG", raising=False)
    result = fail_with(OSError(28, "No space left on device"), monkeypatch)
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr


def test_a_warning_of_the_library_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # put back after the test
    with pytest.raises(SystemExit):
        main(["--version"])
    warnings.showwarning(UserWarning("no pooling is named"), UserWarning, "encoder.py", 7)
    assert capsys.readouterr().err == "warning: no pooling is named\n"


def test_ctrl_c_has_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fail_with(KeyboardInterrupt(), monkeypatch)
    assert (result.exit_code, result.stderr) == (130, "stopped\n")


@pytest.mark.skipif(os.name == "nt", reason="needs a shell's pipe")
@pytest.mark.parametrize("arguments", [["--help"], ["completion", "bash"], ["status", "--jsonl"]])
def test_a_closed_pipe_ends_quietly(arguments: list[str], indexed: Path) -> None:
    """The reader is gone before the first byte, which is what `| head -0` comes to."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "likewise", *arguments], stdout=pipe, stderr=subprocess.PIPE, cwd=indexed
        )
    assert done.stderr == b""
    assert done.returncode in (0, 1)


def test_a_terminal_without_utf_8_shows_what_it_can(indexed: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = process("search", "輪替金鑰", "-k", "1", cwd=indexed, env=environment)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rb"zh/\?\?\.md:7\t[\d.]+\t\?{4}\t\?+\n", done.stdout)
    done = process("search", "輪替金鑰", "-k", "1", "--json", cwd=indexed, env=environment)
    assert json.loads(done.stdout.decode("ascii"))["hits"][0]["path"] == "zh/金鑰.md"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str, run: Run) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_LIKEWISE_COMPLETE" in result.stdout


def complete(*words: str) -> list[str]:
    environment = {
        **os.environ,
        "_LIKEWISE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["likewise", *words]),
        "COMP_CWORD": str(len(words)),
    }
    code = "import sys; sys.argv[0] = 'likewise'; from likewise.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_completion_of_commands_and_options() -> None:
    assert complete("se") == ["search"]
    assert set(complete("search", "--mo")) == {"--mode"}
    assert complete("search", "--mode", "d") == ["dense"]
