"""MariaDB and MySQL: their transactions, their catalogue and their planner.

Facts are from mariadb.com/kb (aborting statements, information schema tables) and
dev.mysql.com/doc (executable comments: each server takes only the limit that it knows).
"""

from __future__ import annotations

from math import prod

from sqlalchemy import Connection, Engine

from lynx_dspy.engines.server_schema import Catalogue, Relation, schema
from lynx_dspy.engines.vendors import Query, Run, Vendor
from lynx_dspy.values import Column, FailureClass, Finding, Limits, Schema

_RELATIONS = """
    SELECT table_schema, table_name, table_comment, table_type, table_rows,
           COALESCE(data_length, 0)
    FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name
"""
_COLUMNS = """
    SELECT table_schema, table_name, column_name, column_type, is_nullable, column_comment
    FROM information_schema.columns WHERE table_schema = DATABASE()
    AND FIND_IN_SET('select', privileges) ORDER BY table_name, ordinal_position
"""
_KEYS = """
    SELECT constraint_name, table_schema, table_name, column_name,
           referenced_table_schema, referenced_table_name, referenced_column_name
    FROM information_schema.key_column_usage WHERE table_schema = DATABASE()
    AND (constraint_name = 'PRIMARY' OR referenced_table_name IS NOT NULL)
    ORDER BY table_name, constraint_name, ordinal_position
"""
_PARTITIONS = """
    SELECT table_name, MAX(partition_method), MAX(partition_expression), COUNT(*)
    FROM information_schema.partitions
    WHERE table_schema = DATABASE() AND partition_name IS NOT NULL GROUP BY table_name
"""
_STAMP = """
    SELECT COUNT(*), MAX(create_time), MAX(update_time), SUM(table_rows), SUM(data_length),
           SUM(CRC32(CONCAT_WS('/', table_name, create_time, update_time, auto_increment,
                               table_rows, table_comment)))
    FROM information_schema.tables WHERE table_schema = DATABASE()
"""
_MANY_ROWS = 1_000_000_000


def _begin(limits: Limits) -> tuple[str, ...]:
    seconds = max(0.001, limits.timeout_seconds)
    return (
        f"SET SESSION sql_select_limit = {limits.max_rows + 1} "
        f"/*M!100101 , max_statement_time = {seconds:.3f} */ "
        f"/*!50708 , max_execution_time = {round(seconds * 1000)} */",
        "START TRANSACTION READ ONLY",
    )


def _message(error: BaseException) -> str:
    """`[number] message`, as the server numbers its errors."""
    cause = getattr(error, "orig", None) or error
    if len(cause.args) == 2 and isinstance(cause.args[0], int):
        return f"[{cause.args[0]}] {cause.args[1]}"
    return str(cause)


def _explain(run: Run, connection: Connection, code: str) -> tuple[Finding, ...]:
    """Errors are raised; what is found is a join of more rows than anyone would wait for."""
    steps = connection.exec_driver_sql(f"EXPLAIN {code}").mappings().all()
    parts: dict[object, list[float]] = {}
    for step in steps:
        parts.setdefault(step["id"], []).append(max(1.0, float(step["rows"] or 1)))
    rows = max(map(prod, parts.values()), default=0.0)
    if rows < _MANY_ROWS:
        return ()
    message = f"the planner expects to pass {rows:.0e} rows: filter or join on keys first"
    return (Finding(FailureClass.SEMANTIC, message),)


def _introspect(engine: Engine, query: Query, name: str) -> Schema:
    partitions = {table: cut for table, *cut in query(_PARTITIONS)}
    relations = [
        Relation(
            (space, table),
            _described("" if "VIEW" in kind else comment, partitions.get(table)),
            "VIEW" in kind,
            -1 if rows is None else int(rows),
            int(size),
        )
        for space, table, comment, kind, rows, size in query(_RELATIONS)
    ]
    keys = query(_KEYS)
    home, reader = query("SELECT COALESCE(DATABASE(), ''), CURRENT_USER()")[0]
    read = Catalogue(
        "mysql",
        name,
        home,
        relations,
        [
            ((space, table), Column(column, kind, comment or "", nullable == "YES"))
            for space, table, column, kind, nullable, comment in query(_COLUMNS)
        ],
        [((k[1], k[2]), k[3]) for k in keys if k[0] == "PRIMARY"],
        [(k[0], (k[1], k[2]), k[3], (k[4], k[5]), k[6]) for k in keys if k[5]],
    )
    return schema(read, query, reader)


def _described(comment: str, cut: list[object] | None) -> str:
    """The comment, with how a partitioned table is cut.

    >>> _described("sales", ["RANGE", "year(`day`)", 12])
    'sales; partitioned by RANGE (year(day)), 12 partitions'
    """
    if not cut:
        return comment
    method, expression, parts = cut
    plain = str(expression or "").replace("`", "")
    return "; ".join(
        filter(None, (comment, f"partitioned by {method} ({plain}), {parts} partitions"))
    )


VENDOR = Vendor(
    name="mysql",
    begin=_begin,
    message=_message,
    introspect=_introspect,
    opening=(
        "SET SESSION sql_mode = REPLACE(REPLACE(@@sql_mode, 'ANSI_QUOTES', ''), "
        "'NO_BACKSLASH_ESCAPES', '')",
    ),
    identify="SELECT CONNECTION_ID()",
    cancel="KILL QUERY {}",
    stamp=_STAMP,
    explain=_explain,
)
