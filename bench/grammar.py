"""Does a grammar made from the schema help while the local model decodes?

A GBNF grammar of one SELECT: the columns and tables of the schema, the functions of SQLite, one
query with joins, derived tables, set operations and windows. Names that a query makes up itself
(aliases) are lower case and keywords upper case, so that no text has two readings to be followed
at every token. There are no CTEs: their columns would have to be taken on trust.

    python -m bench.grammar --jsonl train.jsonl --databases databases --out runs/grammar --every 4
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dspy

import lynx_dspy as lynx
from bench.questions import Databases, judged, summary
from lynx_dspy.config import profile
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import Schema

FUNCTIONS = """
COUNT SUM AVG MIN MAX TOTAL GROUP_CONCAT ROUND ABS LOWER UPPER LENGTH SUBSTR TRIM REPLACE INSTR
COALESCE NULLIF IFNULL IIF DATE DATETIME TIME JULIANDAY STRFTIME ROW_NUMBER RANK DENSE_RANK LAG
LEAD FIRST_VALUE LAST_VALUE NTILE
"""

RULES = r"""
root ::= "```sql\n" query ";"? "\n```"
query ::= select (ws setop ws select)* (ws ordered)? (ws "LIMIT" ws int)?
ordered ::= "ORDER BY" ws order ("," ws order)*
setop ::= "UNION ALL" | "UNION" | "INTERSECT" | "EXCEPT"
select ::= "SELECT" ws ("DISTINCT" ws)? item ("," ws item)* from? where? group?
from ::= ws "FROM" ws relation (ws join ws relation (ws "ON" ws expr)?)*
where ::= ws "WHERE" ws expr
group ::= ws "GROUP BY" ws expr ("," ws expr)* (ws "HAVING" ws expr)?
join ::= ("LEFT " | "INNER " | "CROSS ")? "JOIN"
relation ::= table (ws ("AS" ws)? alias)? | "(" query ")" (ws ("AS" ws)? alias)?
item ::= "*" | alias ".*" | expr (ws "AS" ws alias)?
order ::= (expr | alias) (ws ("ASC" | "DESC"))? (ws "NULLS " ("FIRST" | "LAST"))?
expr ::= all (ws "OR" ws all)*
all ::= not (ws "AND" ws not)*
not ::= ("NOT" ws)? test
test ::= sum (ws? compare ws? sum | ws "IS" ws ("NOT" ws)? "NULL" | ws ("NOT" ws)? range)?
compare ::= "=" | "!=" | "<>" | "<=" | ">=" | "<" | ">"
range ::= "IN" ws? "(" (query | sum ("," ws? sum)*) ")" | "LIKE" ws sum | between
between ::= "BETWEEN" ws sum ws "AND" ws sum
sum ::= term (ws? ("+" | "-" | "||") ws? term)*
term ::= atom (ws? ("*" | "/" | "%") ws? atom)*
atom ::= number | string | "NULL" | ref | call | cast | case | exists | "(" (query | expr) ")"
call ::= function "(" (ws? "*" | ("DISTINCT" ws)? expr ("," ws? expr)*)? ")" over?
over ::= ws "OVER" ws? "(" ("PARTITION BY" ws expr ("," ws expr)*)? (ws? ordered)? ")"
cast ::= "CAST(" expr ws "AS" ws ("REAL" | "INTEGER" | "FLOAT" | "TEXT" | "DATE") ")"
case ::= "CASE" (ws "WHEN" ws expr ws "THEN" ws expr)+ (ws "ELSE" ws expr)? ws "END"
exists ::= "EXISTS" ws? "(" query ")"
ref ::= (alias ".")? column
alias ::= [a-z] [a-z0-9_]{0,30}
string ::= "'" [^'\n]{0,80} "'"
number ::= int ("." [0-9]{1,8})?
int ::= "-"? [0-9]{1,12}
ws ::= " " | "\n" [ ]{0,8}
"""


def grammar_of(schema: Schema) -> str:
    """The grammar, in GBNF, of queries over `schema` in SQLite's dialect."""
    tables = [table.name for table in schema.tables]
    columns = {column.name for table in schema.tables for column in table.columns}
    calls = [spelled for name in FUNCTIONS.split() for spelled in (name, name.lower())]
    rules = [("table", tables), ("column", sorted(columns)), ("function", calls)]
    return RULES + "\n".join(f"{name} ::= {_choice(words)}" for name, words in rules)


def _choice(words: Iterable[str]) -> str:
    return " | ".join(json.dumps(w if w.isidentifier() else f'"{w}"') for w in words)


def main() -> int:
    options = _parse()
    lines = Path(options.jsonl).read_text().splitlines()
    items = [json.loads(line) for line in lines][:: options.every]
    lm = lynx.lm(options.lm)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    print(
        "| decoding | static check | EX | runs | tokens | seconds |\n|---|---|---:|---:|---:|---:|"
    )
    with TemporaryDirectory() as folder:
        databases = Databases(Path(options.databases), Path(folder))
        for checked in (False, True):
            for constrained in (False, True):
                name = (
                    f"{'grammar' if constrained else 'free'}-{'mended' if checked else 'written'}"
                )
                records = run(items, lm, databases, constrained, checked)
                (out / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
                s = summary(records)
                print(
                    f"| {'grammar' if constrained else 'free'} | {'on' if checked else 'off'} "
                    f"| {s['ex']:.1%} | {s['executable']:.1%} | {s['tokens']:,.0f} "
                    f"| {s['seconds']:.1f} |",
                    flush=True,
                )
    return 0


def run(
    items: list[dict[str, Any]], lm: dspy.LM, databases: Databases, constrained: bool, checked: bool
) -> list[dict[str, Any]]:
    """One record a question: one program each, no further candidates, no repair."""
    config = profile(lm.model).with_(candidates=1, rescue_candidates=0, parse_retries=0)
    without = [] if checked else ["static-check"]
    program = lynx.ablate(without, lynx.Lynx(config=config))
    records = []
    for item in items:
        database = databases.open(item["db"])
        own = lm.copy(metadata={"grammar": grammar_of(abstract(database))}) if constrained else lm
        with dspy.context(lm=own):
            answer = program(
                question=item["question"], database=database, evidence=item["knowledge"]
            )
        records.append(judged(item, answer, database))
    return records


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jsonl", required=True)
    parser.add_argument("--databases", required=True, help="folder of <db>.sql scripts")
    parser.add_argument("--out", required=True)
    parser.add_argument("--lm", default=None)
    parser.add_argument("--every", type=int, default=4, help="take each N-th question only")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
