"""Names that no program may use: functions and tables that do more than compute and read.

By engine: what reads or writes files, reaches the network, runs code or text as a program, sleeps,
locks, moves sequences, changes settings, or shows secrets and what others do. Facts are from each
engine's function reference; the conformance suite tries them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SQLITE = (
    r"load_extension|readfile|writefile|edit|fsdir|lsmode|fts\d_tokenizer|eval|zipfile|"
    r"sqlite_(?:scan|attach|query|dbpage)\w*"
)
_DUCKDB = (
    r"read_\w+|write_\w+|\w*parquet\w+|(?:csv|json|arrow|pandas|parquet)_scan\w*|sniff_\w+|"
    r"(?:postgres|mysql)_\w+|st_read\w*|iceberg_\w+|delta_scan|shellfs\w*|duckdb_\w+|pragma_\w+|"
    r"which_secret|query|query_table|python_\w+|json_execute_serialized_sql|getenv|"
    r"(?:en|dis)able_\w+|(?:force_)?checkpoint|import_database"
)
_POSTGRES = (
    r"pg_(?!(?:typeof|size_pretty|size_bytes|column_size|relation_size|table_size|indexes_size|"
    r"total_relation_size|get_\w+def)$)\w+|"
    r"lo_\w+|loread|lowrite|dblink\w*|copy_database|current_setting|set_config|nextval|setval|"
    r"(?:query|table|cursor|schema|database)_to_xml\w*|ts_stat|ts_rewrite|connectby|crosstab\w*|"
    r"txid_\w+|(?:brin|gin)_\w+|plpy_\w+|http|http_\w+"
)
_MYSQL = (
    r"sleep\w*|benchmark|load_file|sys_\w+|(?:get|release)_(?:all_)?locks?|(?:master|source)_\w+_wait|"
    r"wait_(?:for|until)_\w+|last_insert_id|lastval|next_value_for|nextvaluefor|"
    r"(?:keyring|audit|group_replication|version_tokens|asynchronous_connection)_\w+|"
    r"service_(?:get|release)_\w+"
)
_WAREHOUSES = (
    r"reflect|try_reflect|java_method|secret|try_secret|ai_\w+|system\$\w+|external_query|"
    r"getnextval|(?:get|list|build)_?\w*(?:url|file|stage)\w*|get_(?:absolute|relative)_path"
)
_OTHERS = r"xp_\w+|sp_\w+|openrowset|opendatasource|openquery|waitfor|file|httpuritype"

FORBIDDEN_FUNCTION = re.compile(
    "|".join((_SQLITE, _DUCKDB, _POSTGRES, _MYSQL, _WAREHOUSES, _OTHERS))
)
"""Of every dialect: a name that is harmless in one may be a hole in another that is read alike."""

FORBIDDEN_PACKAGES = frozenset({"cortex", "ai", "ml", "dbms_lock", "utl_http", "utl_file"})
"""Packages of functions that cost money, sleep, or reach files and the network."""

FORBIDDEN_TABLE = re.compile(
    r"pragma_\w+|sqlite_dbpage|sqlite_stmt|dbstat|duckdb_secrets|processlist|"
    r"pg_(?:authid|shadow|user_mappings?|hba_file_rules|ident_file_mappings|file_settings|config|"
    r"settings|db_role_setting|largeobject\w*|stat_\w+|statistic\w*|stats\w*|foreign_server|"
    r"subscription|locks|prepared_\w+|replication_\w+|shmem_allocations|backend_memory_contexts)"
)
"""Tables of the system that hold secrets, settings, or what others do."""

_FORMATS = frozenset({"csv", "json", "text", "parquet", "orc", "avro", "delta", "binaryfile"})

FORBIDDEN_SPACES: Mapping[str, frozenset[str]] = {
    "mysql": frozenset({"mysql", "performance_schema", "sys"}),
    "spark": _FORMATS | {"image", "libsvm", "jdbc"},
    "databricks": _FORMATS | {"image", "libsvm", "jdbc", "system"},
}
"""Dialect -> schemas of the system, or words that make of a table's name a file's."""

STATEMENTS: Mapping[str, frozenset[str]] = {
    "tsql": frozenset(
        [
            *("ALTER", "BACKUP", "BULK", "CREATE", "DBCC", "DECLARE", "DELETE", "DENY", "DROP"),
            *("EXEC", "EXECUTE", "GRANT", "INSERT", "INTO", "KILL", "MERGE", "RECONFIGURE"),
            *("RESTORE", "REVERT", "REVOKE", "SHUTDOWN", "TRUNCATE", "UPDATE", "UPDATETEXT"),
            *("USE", "WAITFOR", "WRITETEXT"),
        ]
    ),
}
"""Dialect in which a statement may follow another without a sign between them -> their words."""

SEQUENCE_COLUMNS: Mapping[str, frozenset[str]] = {
    "snowflake": frozenset({"NEXTVAL"}),
    "oracle": frozenset({"NEXTVAL"}),
}
"""Dialect -> columns whose reading moves a sequence on."""
