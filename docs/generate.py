"""Write the parts of the guide that come from the code: `docs/cli.md` from the commands' own help.

Run it as `python docs/generate.py`, or with `--check` to see whether the files are current (a test does).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from likewise.cli.main import COMMANDS, cli

HERE = Path(__file__).resolve().parent

INTRODUCTION = """\
<!-- Written by docs/generate.py from the commands' help; edit that instead. -->

# Command line

"""


def cli_reference() -> str:
    """The reference of all commands as Markdown.

    Example:
        >>> "## likewise search" in cli_reference()
        True
    """
    with click.Context(cli, info_name="likewise") as context:
        parts = [INTRODUCTION, _command(cli, context), "\n## Commands\n\n"]
        parts += [f"- [`{name}`](#likewise-{name}): {place.short_help}\n" for name, place in COMMANDS.items()]
        for name in COMMANDS:
            command = cli.get_command(context, name)
            assert command is not None, name
            with click.Context(command, info_name=name, parent=context) as inner:
                parts.append(f"\n## likewise {name}\n\n{_command(command, inner)}")
                if isinstance(command, click.Group):
                    for sub, child in command.commands.items():
                        with click.Context(child, info_name=sub, parent=inner) as innermost:
                            parts.append(f"\n### likewise {name} {sub}\n\n{_command(child, innermost)}")
    return "".join(parts)


def _command(command: click.Command, context: click.Context) -> str:
    """Help of one command: usage, what it does, its options (all have --help), notes and examples."""
    usage = " ".join(command.collect_usage_pieces(context))
    sections = [f"```\n{context.command_path} {usage}\n```\n", _prose(command.help or "")]
    rows = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and "--help" not in parameter.opts
        if (record := parameter.get_help_record(context))
    ]
    if rows:
        table = ["| Option | Meaning |", "|---|---|"]
        table += [f"| `{_cell(names)}` | {_cell(meaning)} |" for names, meaning in rows]
        sections.append("\n".join(table) + "\n")
    sections += [_block(block) for block in _blocks(command.epilog or "")]
    return "\n".join(sections)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _prose(text: str) -> str:
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs) + "\n"


def _blocks(text: str) -> list[str]:
    return [block.strip("\n") for block in re.split(r"\n[ \t]*\n", text.strip("\n")) if block.strip()]


def _block(block: str) -> str:
    """A paragraph of an epilog; examples become a code block."""
    block = block.removeprefix("\b\n")
    if block.startswith("Examples:\n"):
        lines = [line.removeprefix("  ") for line in block.splitlines()[1:]]
        return "```sh\n" + "\n".join(lines) + "\n```\n"
    return _prose(block)


def main() -> int:
    """Write the files, or with `--check` only compare them."""
    path, text = HERE / "cli.md", cli_reference()
    if "--check" in sys.argv[1:]:
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return 0
        print(f"{path} is not current: run python docs/generate.py", file=sys.stderr)
        return 1
    path.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
