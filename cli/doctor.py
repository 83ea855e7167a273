"""`likewise doctor`: checks of an index, each with its remedy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.options import index_option, index_path
from likewise.cli.output import Format, output_options, screen, write, write_json, write_jsonl
from likewise.cli.terminal import printable
from likewise.errors import EncoderError

if TYPE_CHECKING:
    from likewise.index.doctor import Check
    from likewise.index.records import Json

EPILOG = """\b
Examples:
  likewise doctor
  likewise doctor --index ~/handbook --json
"""

_COLORS = {"ok": "green", "info": "cyan", "warning": "yellow", "error": "red"}


@click.command(short_help="Check an index, and say how to mend it.", epilog=EPILOG)
@index_option
@output_options
def doctor(index_folder: Path | None, format: Format) -> None:
    """Check the index: its database, its vectors, its encoder, and whether they belong together.

    Nothing is changed, and the encoder is not loaded. The exit status is 1 if a check found an error.
    """
    from likewise.index.doctor import check

    folder = index_path(index_folder)
    checks = check(folder)
    if not any(each.severity == "error" for each in checks):
        checks += check_model(folder)
    if format is Format.JSON:
        write_json({"version": 1, "checks": [check_json(each) for each in checks]})
    elif format is Format.JSONL:
        write_jsonl({"version": 1, **check_json(each)} for each in checks)
    else:
        _print(checks)
    if any(each.severity == "error" for each in checks):
        raise click.exceptions.Exit(1)


def check_model(folder: Path) -> list[Check]:
    """Whether the encoder that the index needs is on this machine and still the same; it is not loaded.

    Args:
        folder: A sound index folder.
    """
    from likewise.embedder import encoder_identity
    from likewise.index.doctor import Check
    from likewise.index.index import Index

    with Index.open(folder) as index:
        name, expected = index.encoder_name, index.fingerprint
    if not expected:
        return []
    try:
        found = encoder_identity(name)
    except EncoderError as error:
        return [
            Check("model", "error", f"the encoder {name} cannot be used: {error.message}", error.remedy or "")
        ]
    if found != expected:
        return [
            Check(
                "model",
                "error",
                f"the encoder {name} on this machine is another than the index was made with",
                "restore the model, or embed everything anew: likewise index --reembed",
            )
        ]
    return [Check("model", "ok", f"{name} is on this machine and unchanged")]


def _print(checks: list[Check]) -> None:
    place = screen()
    for each in checks:
        severity = place.style(f"{each.severity:<7}", color=_COLORS.get(each.severity), bold=True)
        write(f"{severity}  {each.name}: {printable(each.message)}")
        if each.remedy:
            write(f"         try: {printable(each.remedy)}")


def check_json(each: Check) -> dict[str, Json]:
    """The shape of one check."""
    return {
        "name": each.name,
        "severity": str(each.severity),
        "message": each.message,
        "remedy": each.remedy,
    }
