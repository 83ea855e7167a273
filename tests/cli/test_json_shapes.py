"""Every JSON shape of the guide is the one that the commands print."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from likewise.cli.main import COMMANDS, cli

Run = Callable[..., Result]

# Their shapes are checked in tests of their own, where there is data to train on.
_TRAINING = {
    "pretrain",
    "adapt",
    "train",
    "mine",
    "distill",
    "fill-mask",
    "evaluate-mlm",
    "attention",
    "predict",
}
# A group; its subcommands print JSON.
_GROUPS = {"tokenizer", "finetune"}

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "formats-json.md"

_EXAMPLE = re.compile(r"<!-- likewise (?P<command>.+?) -->\n```json\n(?P<shape>.+?)\n```", re.DOTALL)
# Objects whose keys are data.
_MAPS = ("states", "languages", "metadata", "kinds", "repeated", "ambiguous", "over_limit")


def _examples() -> list[tuple[str, str]]:
    text = GUIDE.read_text(encoding="utf-8")
    return [(match["command"], match["shape"]) for match in _EXAMPLE.finditer(text)]


def test_every_command_with_json_is_in_the_guide() -> None:
    shown = {(shlex.split(command)[0], "--jsonl" in command) for command, _ in _examples()}
    with_json = {
        name
        for name in COMMANDS
        if any("--json" in parameter.opts for parameter in cli.get_command(click.Context(cli), name).params)  # type: ignore[union-attr]
    }
    assert with_json == set(COMMANDS) - {"completion"} - _GROUPS
    assert {name for name, _ in shown} == with_json - _TRAINING


@pytest.mark.parametrize(("command", "shape"), _examples(), ids=[command for command, _ in _examples()])
def test_json_has_the_documented_shape(command: str, shape: str, run: Run, chat_server: Any) -> None:
    arguments = [chat_server.url if word == "URL" else word for word in shlex.split(command)]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    real = result.stdout.splitlines()[0] if "--jsonl" in arguments else result.stdout
    compare(json.loads(shape), json.loads(real), command)


def compare(documented: object, real: object, place: str) -> None:
    """Equal keys and equal types all the way down; of lists the first items, and null fits everything."""
    if documented is None or real is None:
        return
    if isinstance(documented, float) and isinstance(real, int):
        real = float(real)
    assert type(documented) is type(real), place
    if isinstance(documented, dict) and isinstance(real, dict):
        assert list(documented) == list(real), place
        for key, value in documented.items():
            if key not in _MAPS:
                compare(value, real[key], f"{place} {key}")
    elif isinstance(documented, list) and isinstance(real, list) and documented:
        assert real, place
        compare(documented[0], real[0], f"{place} [0]")


def test_the_comparison_notices_a_difference() -> None:
    with pytest.raises(AssertionError):
        compare({"a": 1}, {"a": 1, "b": 2}, "")
    with pytest.raises(AssertionError):
        compare({"a": [{"b": 1}]}, {"a": [{"b": "1"}]}, "")
