"""The `likewise` command: a group that loads one command when it is called, and the edge where errors end.

Only click is imported here. The short help of every command is stored beside its place, so `likewise --help`
imports none of them. Must not hold what a command does: each has a module of its own.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn, TextIO

import click

from likewise.errors import LikewiseError, UsageError
from likewise.version import __version__


class Place(NamedTuple):
    """Where a command lives (`module:attribute`) and its line in the list of commands."""

    target: str
    short_help: str


COMMANDS = {
    "index": Place("likewise.cli.index:index", "Create an index of folders, or bring it up to date."),
    "search": Place("likewise.cli.search:search", "Find the passages that answer a query."),
    "context": Place("likewise.cli.context:context", "Pack the best passages, cited, into a token budget."),
    "ask": Place("likewise.cli.ask:ask", "Answer a question from the index, with citations."),
    "get": Place("likewise.cli.get:get", "Print a passage, or lines of an indexed document."),
    "similar": Place("likewise.cli.similar:similar", "Find passages like one that you have."),
    "evaluate": Place("likewise.cli.evaluate:evaluate", "Measure how good the search is."),
    "embed": Place("likewise.cli.embed:embed", "Turn texts into vectors."),
    "adapt": Place("likewise.cli.adapt:adapt", "Train an index's encoder on its documents, if that helps."),
    "pretrain": Place(
        "likewise.cli.pretrain:pretrain", "Train an encoder on text, from scratch or from another."
    ),
    "train": Place("likewise.cli.train:train", "Train an encoder on pairs of texts."),
    "pairs": Place("likewise.cli.pairs:pairs", "Make training pairs from a folder without labels."),
    "mine": Place("likewise.cli.mine:mine", "Find hard negatives for training pairs."),
    "distill": Place("likewise.cli.distill:distill", "Train a smaller model to do what a larger one does."),
    "finetune": Place("likewise.cli.finetune:finetune", "Teach an encoder a task from labelled examples."),
    "predict": Place("likewise.cli.predict:predict", "Label, tag or answer with a fine-tuned model."),
    "tokenizer": Place("likewise.cli.tokenizer:tokenizer", "Train a vocabulary, or see how one cuts a text."),
    "fill-mask": Place("likewise.cli.fill_mask:fill_mask", "Guess what stands behind [MASK]."),
    "evaluate-mlm": Place("likewise.cli.evaluate_mlm:evaluate_mlm", "Measure how well a model fills masks."),
    "attention": Place("likewise.cli.attention:attention", "Show which tokens a model looks at."),
    "status": Place("likewise.cli.status:status", "Show what the index holds and what it skipped."),
    "doctor": Place("likewise.cli.doctor:doctor", "Check an index, and say how to mend it."),
    "completion": Place("likewise.cli.completion:completion", "Print the shell's completion script."),
}

EPILOG = """\b
Exit status: 0 done, 1 the request failed, 2 wrong usage, 3 done but some
documents were skipped (`likewise index --strict`), 130 stopped with Ctrl-C.

\b
Examples:
  likewise index ~/handbook
  likewise search "how do I rotate a signing key"
  likewise context "how do I rotate a signing key" --budget 2000

Data goes to standard output, everything else to standard error.
"""


class Failure(click.ClickException):
    """An error on its way out: what is shown on standard error, and the exit status."""

    def __init__(self, message: str, remedy: str | None, exit_code: int) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.exit_code = exit_code  # type: ignore[misc]  # click declares one for the class

    def show(self, file: object = None) -> None:
        """Print the message and, on a line of its own, the remedy."""
        del file  # click's own errors may go elsewhere; ours always go to standard error
        # Paths and texts come from outside: they must not drive the terminal.
        from likewise.cli.terminal import printable

        click.echo(f"error: {printable(self.message)}", err=True)
        if self.remedy is not None:
            click.echo(f"  try: {printable(self.remedy)}", err=True)


class Commands(click.Group):
    """The group of all commands, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order in which people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].target.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest one with a similar name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the stored lines."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.short_help) for name, place in COMMANDS.items()])

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Complete names of commands from the stored lines."""
        from click.shell_completion import CompletionItem

        items = [
            CompletionItem(name, help=place.short_help)
            for name, place in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; every way in which it can end becomes an exit status here."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except LikewiseError as error:
            raise Failure(error.message, error.remedy, 2 if isinstance(error, UsageError) else 1) from error
        except OSError as error:
            if not _closed_pipe(error):
                raise _unexpected(error) from error
            # Whoever reads has enough (`| head`). Nothing more may be written, not even by the flush at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            ctx.exit(130)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            raise _unexpected(error) from error


def _closed_pipe(error: OSError) -> bool:
    # Windows reports a closed pipe as an invalid argument.
    return isinstance(error, BrokenPipeError) or (os.name == "nt" and error.errno == errno.EINVAL)


def _unexpected(error: Exception) -> Exception:
    """What to raise for an error that nobody foresaw: itself if a developer asks for it."""
    if os.environ.get("LIKEWISE_DEBUG"):
        return error
    name = type(error).__name__
    return Failure(
        f"unexpected {name}: {error}" if str(error) else f"unexpected {name}",
        "set LIKEWISE_DEBUG=1 and run it again for the traceback; please report it",
        1,
    )


def _told(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning of the library as commands show theirs: where it was raised says nothing to people."""
    from likewise.cli.output import warn

    warn(str(message))


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="likewise", message="%(prog)s %(version)s")
def cli() -> None:
    """Index a folder of documents, search it by meaning and by words, and hand over cited context.

    An index is the folder .likewise inside the folder that was indexed. Every command finds the nearest one
    in the working directory or its parents; --index or LIKEWISE_INDEX names another.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its status.

    Args:
        arguments: Without the program's name; the process's own if None.
    """
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal's encoding lacks must not end the program.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace" if stream is sys.stdout else "backslashreplace")
    warnings.showwarning = _told
    cli.main(args=None if arguments is None else list(arguments), windows_expand_args=False)
    raise AssertionError("click exits")  # pragma: no cover
