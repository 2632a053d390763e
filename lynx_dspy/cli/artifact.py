"""`lynx artifact`: what a compiled program is, how two differ, whether its record holds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lynx_dspy.cli.plain import echo_json, one_line, visible

if TYPE_CHECKING:
    import dspy

    from lynx_dspy.program import Lynx

_FOLDER = click.Path(path_type=Path)


@click.group("artifact")
def command() -> None:
    """Show, compare and verify compiled programs."""


@command.command("show")
@click.argument("folder", type=_FOLDER, metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def show(folder: Path, as_json: bool) -> None:
    """Say what the artifact in DIR is: origin, scores, and what each stage is told."""
    from lynx_dspy.optimize.view import page, summary

    if as_json:
        echo_json(summary(folder))
    else:
        _echo_lines(page(folder))


@command.command("diff")
@click.argument("before", type=_FOLDER, metavar="DIR")
@click.argument("after", type=_FOLDER, metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def diff(before: Path, after: Path, as_json: bool) -> None:
    """Show what changes between two artifacts: instructions, demos, config, scores."""
    from lynx_dspy.optimize.diff import compare, lines

    found = compare(before, after)
    if as_json:
        echo_json(found)
    else:
        _echo_lines(lines(found))


@command.command("verify")
@click.argument("folders", type=_FOLDER, metavar="DIR...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def verify(folders: tuple[Path, ...], as_json: bool) -> int:
    """Recompute every hash of the artifacts in DIR; exit code 1 and a line a difference."""
    from lynx_dspy.optimize import artifact

    with told_warnings():
        found = {str(folder): artifact.verify(folder) for folder in folders}
        for folder in folders:
            artifact.check_packages(artifact.read_manifest(folder))
    if as_json:
        echo_json({"ok": not any(found.values()), "differences": found})
    else:
        for name, differences in found.items():
            _echo_lines(f"{name}: {line}" for line in differences or ["as recorded"])
    return 1 if any(found.values()) else 0


def open_program(folder: str | None, without: Sequence[str], language: str = "sql") -> Lynx:
    """The program of `--artifact` and `--without`; what does not fit is told on stderr."""
    from lynx_dspy.ablations import ablate
    from lynx_dspy.program import Lynx

    fresh = None if language == "sql" else Lynx(language=language)
    if not folder:
        return ablate(without, fresh)
    from lynx_dspy.optimize.artifact import load

    with told_warnings():
        program = load(folder, into=fresh)
    return ablate(without, program)


def origin_of(program: Lynx, lm: dspy.BaseLM) -> str | None:
    """The identity of the artifact that the program comes from; another model is told on stderr."""
    from lynx_dspy.optimize.origin import origin

    came_from = origin(program)
    if came_from is None:
        return None
    with told_warnings():
        came_from.check(lm)
    return came_from.identity


@contextmanager
def told_warnings() -> Iterator[None]:
    """Artifact warnings inside the block become lines on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for one in caught:
        click.echo(f"warning: {one_line(str(one.message))}", err=True)


def _echo_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(visible(line))
