"""`lynx connect`: names for databases, so that `--db NAME` works everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lynx_dspy.cli.plain import echo_json, one_line
from lynx_dspy.errors import BadInput

if TYPE_CHECKING:
    from lynx_dspy.values import Table

_MOST_TABLES = 40
"""Tables that are shown; --json has all."""


@click.command("connect")
@click.option("--save", nargs=2, metavar="NAME URL", help="Keep a database's URL under a name.")
@click.option("--remove", metavar="NAME", help="Forget a name and its secrets.")
@click.option("--test", metavar="NAME", help="Open it read-only and show what it holds.")
@click.option("--password-env", metavar="VARIABLE", help="With --save: where its password is.")
@click.option("--ask-password", is_flag=True, help="With --save: type it, for the keyring.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    save: tuple[str, str] | None,
    remove: str | None,
    test: str | None,
    password_env: str | None,
    ask_password: bool,
    as_json: bool,
) -> int:
    """List the named databases; save, remove or test one.

    Secrets go to the system keyring or stay in environment variables (${NAME} in the URL); they are
    never written to a file and never shown.
    """
    if sum(asked is not None for asked in (save, remove, test)) > 1:
        raise BadInput("--save, --remove and --test go one at a time.")
    if (password_env or ask_password) and save is None:
        raise BadInput("--password-env and --ask-password go with --save NAME URL.")
    if save is not None:
        return _save(*save, password_env, ask_password, as_json)
    if remove is not None:
        return _remove(remove, as_json)
    if test is not None:
        return _test(test, as_json)
    return _list(as_json)


def _save(name: str, url: str, variable: str | None, ask: bool, as_json: bool) -> int:
    from lynx_dspy import connections

    if variable and ask:
        raise BadInput("--password-env and --ask-password exclude each other.")
    if variable:
        url = connections.with_password(url, connections.environment(variable))
    if ask:
        from urllib.parse import quote

        connections.with_password(url, "")
        typed = click.prompt("Password", hide_input=True, err=True)
        url = connections.with_password(url, quote(typed, safe=""))
    kept = connections.save(name, url)
    if as_json:
        echo_json({"saved": name, "url": kept})
    else:
        click.echo(f"{name}: {one_line(kept)}")
    if kept != url and "${keyring" in kept and not ask:
        click.echo("note: the secret is in your keyring, and in your shell's history", err=True)
    return 0


def _remove(name: str, as_json: bool) -> int:
    from lynx_dspy import connections

    connections.remove(name)
    if as_json:
        echo_json({"removed": name})
    else:
        click.echo(f"{name}: forgotten")
    return 0


def _list(as_json: bool) -> int:
    from lynx_dspy import connections

    known = connections.listed()
    lacks = {name: connections.missing(name, url) for name, url in known.items()}
    if as_json:
        rows = [{"name": n, "url": u, "missing": lacks[n]} for n, u in known.items()]
        echo_json({"connections": rows})
        return 0
    if not known:
        click.echo("No connection is saved. Save one: lynx connect --save NAME URL")
    width = max(map(len, known), default=0)
    for name, url in known.items():
        click.echo(f"{name:{width}}  {one_line(url)}")
        if lacks[name]:
            click.echo(f"{'':{width}}  {one_line(lacks[name])}")
    return 0


def _test(name: str, as_json: bool) -> int:
    from lynx_dspy.engines import connect

    with connect(name) as database:
        schema, shown, dialect = database.introspect(), database.url, database.dialect
    if as_json:
        tables = [{"name": ".".join(t.parts), "rows": t.row_count} for t in schema.tables]
        echo_json({"name": name, "database": shown, "dialect": dialect, "tables": tables})
        return 0
    click.echo(f"{name}: {one_line(shown)} ({dialect}), {_counted(len(schema.tables), 'table')}")
    for table in schema.tables[:_MOST_TABLES]:
        click.echo(f"  {one_line('.'.join(table.parts))}  {_rows(table)}")
    if len(schema.tables) > _MOST_TABLES:
        click.echo(f"  and {len(schema.tables) - _MOST_TABLES:,} more; --json has all")
    return 0


def _rows(table: Table) -> str:
    return "rows not counted" if table.row_count is None else _counted(table.row_count, "row")


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
