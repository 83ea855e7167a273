"""The guide says what the code does: the reference is current, and every command and option is in it.

The JSON shapes are checked in `cli/test_json_shapes.py`.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import click
import pytest

from likewise.cli.main import COMMANDS, cli

DOCS = Path(__file__).resolve().parents[1] / "docs"


def _generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_reference_is_current() -> None:
    current = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert current == _generator().cli_reference(), "run python docs/generate.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    section = (DOCS / "cli.md").read_text(encoding="utf-8").partition(f"\n## likewise {name}\n")[2]
    section = section.partition("\n## ")[0]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert f"likewise {name}" in section.partition("```sh")[2], "an example"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert all(option in section for option in parameter.opts), parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_stored_line_is_the_command_s_own(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.short_help == COMMANDS[name].short_help


def test_every_option_of_an_example_exists() -> None:
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        inner = command.commands.values() if isinstance(command, click.Group) else ()
        parameters = [parameter for one in (command, *inner) for parameter in one.params]
        known = {option for parameter in parameters for option in parameter.opts}
        joined = (command.epilog or "").replace("\\\n", " ")
        for line in joined.splitlines():
            _, found, rest = line.partition(f"likewise {name} ")
            used = re.findall(r"(?<=\s)--?[a-z][a-z-]*", " " + rest.partition("|")[0]) if found else []
            assert set(used) <= known | {"--"}, line
