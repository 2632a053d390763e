"""`lynx compile`: a program that is better on your examples; running it again goes on."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as RichProgress

from lynx_dspy.cli.plain import echo_json, visible
from lynx_dspy.errors import BadInput

if TYPE_CHECKING:
    from lynx_dspy.optimize.budget import Progress
    from lynx_dspy.optimize.outcome import Compiled

_EVERY_SECONDS = 10.0
"""Time between two lines where stderr is no terminal."""

_CACHED_CALLS = 2_000
"""Calls that DSPy holds in memory; the others are on its disk."""


@click.command("compile")
@click.option("--dataset", "name", required=True, help="sql_eval, sample, csv, jsonl, bird, ...")
@click.option("--data", default="", type=click.Path(), help="Folder of the download or your own.")
@click.option("--out", required=True, type=click.Path(), help="artifacts/<backbone>/<variant>")
@click.option(
    "--recipe",
    help="demos, nearest, optuna, bootstrap-rs, mipro, gepa, simba, or several joined by + "
    "[default: demos].",
)
@click.option("--lm", "lm_name", help="Language model [default: $LYNX_LM, else local].")
@click.option("--reflection-lm", help="Writes instructions for mipro, gepa, simba [default: --lm].")
@click.option("--artifact", type=click.Path(), help="Start from this compiled program.")
@click.option("--without", multiple=True, help="Leave a part out; may be given several times.")
@click.option("--train-split", default="", help="Split to learn from.")
@click.option("--val-split", default="", help="Split to choose by.")
@click.option("--test-split", default="", help="Split to measure on at the end; none by default.")
@click.option("--limit", type=click.IntRange(1), help="The first N questions of each split only.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything drawn.")
@click.option(
    "--token-weight",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="EX that 1,000 tokens a question must be worth.",
)
@click.option("--max-lm-calls", type=click.IntRange(1), help="Budget of the search.")
@click.option("--max-tokens", type=click.IntRange(1), help="Budget of the search.")
@click.option("--max-minutes", type=click.FloatRange(0, min_open=True), help="As above.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    help="A number of the recipe, such as labels=gold or sizes=2,4; may be given several times.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Questions at a time; local models take one.",
)
@click.option(
    "--engine", default="threads", show_default=True, help="threads, ray, or ray://HOST:PORT."
)
@click.option("--ves", type=click.IntRange(0), default=0, help="Timings for VES on the test split.")
@click.option("--track", "is_tracked", is_flag=True, help="Log it to MLflow at the end.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    name: str,
    data: str,
    out: str,
    recipe: str | None,
    lm_name: str | None,
    reflection_lm: str | None,
    artifact: str | None,
    without: tuple[str, ...],
    train_split: str,
    val_split: str,
    test_split: str,
    limit: int | None,
    seed: int,
    token_weight: float,
    max_lm_calls: int | None,
    max_tokens: int | None,
    max_minutes: float | None,
    changes: tuple[str, ...],
    workers: int,
    engine: str,
    ves: int,
    is_tracked: bool,
    as_json: bool,
) -> int:
    """Compile the program on the training questions of a dataset and keep it as an artifact.

    Each finished question is kept beside OUT at once. The same call goes on where it was stopped
    and ends as it would have ended. No search sees the test split.
    """
    import dspy

    from lynx_dspy.ablations import ablate
    from lynx_dspy.lm import lm
    from lynx_dspy.optimize.artifact import load
    from lynx_dspy.optimize.compile import compile
    from lynx_dspy.optimize.recipes import DEFAULT

    program = ablate(without, load(artifact) if artifact else None)
    dspy.configure_cache(memory_max_entries=_CACHED_CALLS)
    with Bar() as bar:
        made = compile(
            program,
            name,
            recipe or DEFAULT,
            lm=lm(lm_name),
            reflection_lm=lm(reflection_lm) if reflection_lm else None,
            out=out,
            data=data,
            train_split=train_split,
            val_split=val_split,
            test_split=test_split,
            limit=limit,
            seed=seed,
            token_weight=token_weight,
            max_lm_calls=max_lm_calls,
            max_tokens=max_tokens,
            max_minutes=max_minutes,
            params=_params(changes),
            workers=workers,
            engine=engine,
            watch=bar.watch,
            ves=ves,
        )
    if is_tracked:
        from lynx_dspy.cli.track import track

        track(out)
    return show(made, out, as_json)


def show(made: Compiled, out: str, as_json: bool) -> int:
    """Print what a compile came to; the exit code: 1 where nothing could be scored."""
    from lynx_dspy.optimize import manifest, outcome

    if as_json:
        record = manifest.to_json(made.manifest)
        kept = {"kept": made.kept, "winner": made.winner, "reason": made.verdict.reason}
        used = {name: record[name] for name in ("scores", "recipe", "splits")}
        echo_json({**kept, "out": out, "budget_spent": made.budget_spent, **used})
    else:
        click.echo(visible(outcome.page(made)).rstrip())
        click.echo(
            f"\nThe artifact is in {out}. Run it: lynx ask QUESTION --artifact {out} --db ..."
        )
    return 0 if made.scores["val"]["baseline"].ex else 1


class Bar:
    """On stderr: what runs, questions done, the best so far, calls, tokens, time left."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bar = RichProgress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._told = time.monotonic()
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def watch(self, progress: Progress) -> None:
        """Show how far the compile is."""
        text = line(progress)
        self._bar.update(
            self._task, completed=progress.done, total=progress.questions, description=text
        )
        now = time.monotonic()
        if not self._console.is_terminal and now - self._told >= _EVERY_SECONDS:
            self._told = now
            text = f"{progress.done}/{progress.questions} {text}"
            self._console.print(text, markup=False, soft_wrap=True)


def line(progress: Progress) -> str:
    """The figures beside the bar."""
    parts = [progress.phase]
    if progress.best is not None:
        parts.append(f"best EX {progress.best * 100:.1f} % ({progress.leader})")
    parts.append(f"{progress.spent.calls:,} calls, {progress.spent.tokens:,} tokens")
    if progress.seconds_left is not None:
        parts.append(f"{progress.seconds_left / 60:.0f} min left")
    return " | ".join(parts)


def _params(changes: tuple[str, ...]) -> dict[str, Any]:
    """`name=value` as given to `--set`."""
    pairs = [change.partition("=") for change in changes]
    for name, sign, value in pairs:
        if not (name and sign and value):
            raise BadInput(f"--set {name + sign + value!r} is no name=value, such as labels=gold.")
    return {name: value for name, _, value in pairs}
