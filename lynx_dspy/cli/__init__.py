"""The `lynx` command: one file a sub-command, each loaded when it is called.

Exit codes: 0 done; 1 ran, and the answer is a failure; 2 the call cannot be carried out.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper

import click

from lynx_dspy.cli.plain import one_line
from lynx_dspy.errors import LynxError, UnknownName

_COMMANDS = {
    "ask": ("ask", "Answer a question over a database."),
    "schema": ("schema", "Show what the program would see of a database."),
    "report": ("report", "The paper's tables and figures from finished runs."),
    "eval": ("eval", "Run the program over a dataset and score it; resumes by itself."),
    "score": ("score", "Score predictions in an official format; no model is asked."),
    "ablate": ("ablate", "The program without each part, side by side; resumes by itself."),
    "compile": ("compile", "Make the program better on your examples; resumes by itself."),
    "artifact": ("artifact", "Show, compare and verify compiled programs."),
    "track": ("track", "Log finished runs and artifacts to MLflow; sync what is waiting."),
    "compare": ("compare", "Tracked variants side by side, with paired tests and costs."),
    "ui": ("ui", "Open MLflow's pages over what is tracked."),
    "connect": ("connect", "Name databases, so that --db NAME works everywhere."),
    "docs": ("docs", "Read, embed and index documents once, and search them."),
    "pack": ("pack", "Freeze pages into an offline knowledge pack, and verify one."),
    "model": ("model", "Pull, list and find the embedded models."),
    "doctor": ("doctor", "Say what is installed, what would run, and what is missing."),
    "sample": ("sample", "Build the sample warehouse and name its documents."),
}


class LazyGroup(click.Group):
    """Imports a sub-command's file only when it is called: `lynx --help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            raise UnknownName("command", cmd_name, _COMMANDS)
        module = import_module(f"lynx_dspy.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="lynx-dspy")
def cli() -> None:
    """Ask a database a question and get a verified program."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code. Every error is one line on stderr."""
    _write_anything()
    streams = sys.stdout, sys.stderr
    try:
        code = cli.main(arguments, prog_name="lynx", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _say(_usage_line(error))
    except LynxError as error:
        return _say(str(error))
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        return 130
    except SystemExit:
        if sys.stdout is streams[0]:
            raise
        sys.stdout, sys.stderr = streams  # click swaps them and exits when `head` closes a pipe
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        return _say(_refusal(error))
    return code if isinstance(code, int) else 0


def _write_anything() -> None:
    """Names of files may be no text at all, and a terminal may take ASCII only."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Python would try once more at its end to write what could not be written."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(line: str) -> int:
    with suppress(OSError):
        click.echo(f"lynx: {one_line(line)}", err=True)
    return 2


def _refusal(error: OSError) -> str:
    place = f": {error.filename}" if error.filename else ""
    return f"The system refuses: {error.strerror or error}{place}."


def _usage_line(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "lynx"
    return f"{error.format_message()} See `{path} --help`."
