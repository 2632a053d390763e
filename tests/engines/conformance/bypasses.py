"""Every way around a read-only guard that is publicly known, by dialect; one program a line.

`{file}` is a path that an engine could write to, `{secret}` one that it could read. A line break
within a program is written ⏎. `WRITES` would change something if the guard let them through: they
are also run past it, so that the wall behind it is tried as well.
"""

from __future__ import annotations

from collections.abc import Mapping

_WRITES_EVERYWHERE = """
    DROP TABLE orders
    DELETE FROM orders
    UPDATE orders SET amount = 0
    INSERT INTO customers VALUES (99, 'Eve')
    CREATE TABLE stolen AS SELECT * FROM orders
    ALTER TABLE orders ADD COLUMN x INTEGER
    -- harmless⏎DROP TABLE orders
    /* harmless */ DELETE FROM orders
    /**/DELETE/**/FROM/**/orders
    SELECT 1; DROP TABLE orders
    SELECT 1;-- x⏎DELETE FROM orders
    SELECT 1 /* ; */; DELETE FROM orders
    WITH a AS (SELECT 1 AS x) DELETE FROM orders
    WITH a AS (SELECT 99 AS x) INSERT INTO customers SELECT x, 'Eve' FROM a
    CREATE VIEW stolen AS SELECT * FROM orders
"""

WRITES: Mapping[str, str] = {
    "sqlite": """
        PRAGMA writable_schema = 1
        PRAGMA user_version = 7
        PRAGMA journal_mode = DELETE
        ATTACH '{file}' AS other
        VACUUM INTO '{file}'
        REPLACE INTO customers VALUES (1, 'Eve')
        REINDEX
        SELECT writefile('{file}', 'x')
        WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x
    """,
    "duckdb": """
        COPY orders TO '{file}'
        COPY (SELECT 1) TO '{file}' (FORMAT csv)
        EXPORT DATABASE '{file}'
        ATTACH '{file}' AS other
        INSTALL httpfs
        LOAD httpfs
        CREATE SEQUENCE s
        SET enable_external_access = true
        CHECKPOINT
        TRUNCATE orders
    """,
    "postgres": """
        TRUNCATE orders CASCADE
        WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x
        WITH x AS (UPDATE orders SET amount = 0 RETURNING *) SELECT * FROM x
        WITH x AS (INSERT INTO customers VALUES (99, 'Eve') RETURNING *) SELECT * FROM x
        SELECT * INTO stolen FROM orders
        SELECT 1 AS x INTO TEMP stolen
        COPY orders TO PROGRAM 'touch {file}'
        COPY (SELECT 1) TO '{file}'
        COPY orders FROM '{secret}'
        DO $$ BEGIN DELETE FROM orders; END $$
        EXPLAIN ANALYZE DELETE FROM orders
        SELECT nextval('tickets')
        SELECT setval('tickets', 50)
        SELECT lo_import('{secret}')
        SELECT lo_export(1, '{file}')
        SELECT lo_from_bytea(0, 'x')
        SELECT query_to_xml('DELETE FROM orders', true, true, '')
        SELECT set_config('transaction_read_only', 'off', false)
        SET default_transaction_read_only = off
        SELECT 1; COMMIT; BEGIN READ WRITE; DROP TABLE orders; COMMIT
        REFRESH MATERIALIZED VIEW stolen
        GRANT ALL ON orders TO PUBLIC
        SELECT pg_create_physical_replication_slot('x')
        SELECT pg_notify('a', 'b')
        LISTEN a
        SELECT dblink_exec('dbname=shop', 'DELETE FROM orders')
        SELECT pg_file_write('{file}', 'x', false)
    """,
    "mysql": """
        TRUNCATE orders
        REPLACE INTO customers VALUES (1, 'Eve')
        /*! DELETE FROM orders */
        /*!50000 DELETE FROM orders */
        /*M! DELETE FROM orders */
        SELECT 1 /*!; DELETE FROM orders */
        SELECT 1 INTO OUTFILE '{file}'
        SELECT 1 INTO DUMPFILE '{file}'
        SELECT * FROM orders INTO OUTFILE '{file}' FIELDS TERMINATED BY ','
        SELECT 1 UNION SELECT 2 INTO OUTFILE '{file}'
        LOAD DATA INFILE '{secret}' INTO TABLE customers
        LOAD DATA LOCAL INFILE '{secret}' INTO TABLE customers
        SELECT NEXTVAL(tickets)
        SELECT NEXT VALUE FOR tickets
        SELECT SETVAL(tickets, 50)
        BEGIN NOT ATOMIC DELETE FROM orders; END
        EXECUTE IMMEDIATE 'DELETE FROM orders'
        PREPARE p FROM 'DELETE FROM orders'
        SELECT 1; COMMIT; DELETE FROM orders
        RENAME TABLE orders TO taken
    """,
}

READS: Mapping[str, str] = {
    "sqlite": """
        SELECT load_extension('{secret}')
        SELECT readfile('{secret}')
        SELECT * FROM pragma_database_list
        SELECT * FROM fsdir('.')
        SELECT * FROM sqlite_dbpage
        EXPLAIN QUERY PLAN SELECT 1
        DETACH main
    """,
    "duckdb": """
        SELECT * FROM read_csv('{secret}')
        SELECT * FROM read_text('{secret}')
        SELECT * FROM read_blob('{secret}')
        SELECT * FROM '{secret}'
        FROM 'https://127.0.0.1/x.csv'
        SELECT * FROM glob('/*')
        SELECT * FROM sniff_csv('{secret}')
        SELECT * FROM query('SELECT 1')
        SELECT * FROM duckdb_secrets()
        SELECT * FROM sqlite_scan('{secret}', 'x')
        SELECT getenv('HOME')
        PRAGMA database_list
        CALL pragma_version()
        SELECT * FROM orders FOR UPDATE
    """,
    "postgres": r"""
        SELECT pg_sleep(10)
        SELECT pg_catalog.pg_sleep(10)
        SELECT "pg_sleep"(10)
        SELECT pg_sleep/**/(10)
        SELECT pg_sleep--⏎(10)
        SELECT U&"\0070g_sleep"(10)
        SELECT u&"pg!005fsleep" UESCAPE '!' (10)
        SELECT pg_sleep_for('10 s')
        VALUES (pg_sleep(10))
        SELECT 1 ORDER BY pg_sleep(10)
        SELECT CASE WHEN pg_sleep(10) IS NULL THEN 1 END
        SELECT * FROM ROWS FROM (pg_ls_dir('.'))
        SELECT pg_read_file('{secret}')
        SELECT * FROM pg_read_file('{secret}')
        SELECT pg_read_binary_file('{secret}')
        SELECT (pg_stat_file('{secret}')).*
        SELECT * FROM dblink('dbname=shop', 'SELECT 1') AS t (a int)
        SELECT * FROM crosstab('SELECT 1') AS t (a int)
        SELECT table_to_xml('orders', true, true, '')
        SELECT * FROM ts_stat('SELECT 1')
        SELECT pg_advisory_lock(1)
        SELECT pg_try_advisory_lock(1)
        SELECT * FROM orders FOR UPDATE
        SELECT * FROM orders FOR KEY SHARE SKIP LOCKED
        LOCK TABLE orders
        SELECT pg_terminate_backend(1)
        SELECT pg_cancel_backend(1)
        SELECT pg_reload_conf()
        SELECT pg_switch_wal()
        SELECT pg_export_snapshot()
        SELECT txid_current()
        SELECT current_setting('data_directory')
        SELECT * FROM pg_authid
        SELECT * FROM pg_catalog.pg_shadow
        SELECT * FROM pg_user_mappings
        SELECT * FROM pg_hba_file_rules
        SELECT * FROM pg_settings
        SELECT * FROM pg_stat_activity
        SHOW data_directory
        TABLE pg_authid
        FETCH ALL FROM lynx
        CLOSE ALL
        SELECT 1; SELECT 2
    """,
    "mysql": r"""
        SELECT SLEEP(10)
        SELECT /*! SLEEP(10) */ 1
        SELECT 1 /*!, SLEEP(10) */
        SELECT 1 /*M!100000 , SLEEP(10) */
        SELECT 1 /*!50000 UNION SELECT LOAD_FILE('{secret}') */
        SELECT 1 --1 UNION SELECT LOAD_FILE('{secret}')
        SELECT 1 /* /* */ , SLEEP(10) -- */
        SELECT /*+ SET_VAR(max_execution_time=0) */ 1
        SELECT BENCHMARK(1000000000, SHA1('a'))
        SELECT LOAD_FILE('{secret}')
        SELECT `LOAD_FILE`('{secret}')
        SELECT LOAD_FILE /**/ ('{secret}')
        SELECT GET_LOCK('a', 10)
        SELECT RELEASE_ALL_LOCKS()
        SELECT MASTER_POS_WAIT('a', 1, 10)
        SELECT MASTER_GTID_WAIT('0-1-999', 10)
        SELECT * FROM orders FOR UPDATE
        SELECT * FROM orders LOCK IN SHARE MODE
        SELECT 1 INTO @a
        SELECT @a := 1
        SELECT @@datadir
        SELECT @@global.secure_file_priv
        SELECT * FROM mysql.user
        SELECT * FROM `mysql`.`global_priv`
        SELECT * FROM performance_schema.threads
        SELECT * FROM information_schema.processlist
        SELECT sys_exec('touch {file}')
        SELECT 1 PROCEDURE ANALYSE()
        HANDLER orders OPEN
        DO SLEEP(10)
        SHOW GRANTS
        SET @a = 1
        KILL 1
        FLUSH TABLES
    """,
    "snowflake": """
        CALL system$wait(10)
        SELECT SYSTEM$CANCEL_ALL_QUERIES(1)
        EXECUTE IMMEDIATE 'DROP TABLE orders'
        SELECT * FROM @stage
        SELECT $1 FROM @~/f
        LIST @stage
        PUT file:///etc/passwd @stage
        GET @stage file:///tmp
        COPY INTO @stage FROM orders
        SELECT * FROM DIRECTORY(@stage)
        SELECT * FROM TABLE(INFER_SCHEMA(LOCATION => '@stage', FILE_FORMAT => 'f'))
        SELECT GET_PRESIGNED_URL(@stage, 'f')
        SELECT BUILD_SCOPED_FILE_URL(@stage, 'f')
        SELECT tickets.NEXTVAL
        SELECT * FROM TABLE(GETNEXTVAL(tickets))
        SELECT * FROM TABLE(procedure_of_mine())
        SELECT * FROM TABLE(RESULT_SCAN(LAST_QUERY_ID()))
        WITH p AS PROCEDURE () RETURNS INT LANGUAGE SQL AS $$BEGIN RETURN 1; END$$ CALL p()
        BEGIN DELETE FROM orders; END
        SELECT SNOWFLAKE.CORTEX.COMPLETE('model', 'text')
        SELECT AI_COMPLETE('model', 'text')
        USE ROLE ACCOUNTADMIN
        ALTER SESSION SET QUERY_TAG = 'x'
        SHOW TABLES ->> DROP TABLE orders
        SELECT 1 -- x⏎; DROP TABLE orders
        SELECT 1 // x⏎; DROP TABLE orders
    """,
    "bigquery": """
        DECLARE x INT64; SELECT 1
        BEGIN DELETE FROM orders WHERE TRUE; END
        EXECUTE IMMEDIATE 'DROP TABLE orders'
        CALL p()
        SET x = 1
        SELECT * FROM EXTERNAL_QUERY('connection', 'SELECT 1')
        EXPORT DATA OPTIONS (uri = 'gs://x/*') AS SELECT 1
        LOAD DATA INTO orders FROM FILES (uris = ['gs://x'])
        CREATE TEMP FUNCTION f() RETURNS INT64 LANGUAGE js AS 'return 1'; SELECT f()
        SELECT * FROM ML.PREDICT(MODEL m, TABLE orders)
        SELECT AI.GENERATE('text')
        SELECT @@project_id
        ASSERT 1 = 1
        SELECT 1; SELECT 2
        SELECT 1 # x⏎; DROP TABLE orders
        FROM orders |> DELETE
    """,
    "spark": """
        SELECT reflect('java.lang.System', 'exit', 1)
        SELECT java_method('java.lang.Runtime', 'getRuntime')
        SELECT try_reflect('java.lang.System', 'exit', 1)
        SELECT * FROM csv.`/etc/passwd`
        SELECT * FROM text.`/etc/passwd`
        SELECT * FROM TEXT.`/etc/passwd`
        SELECT * FROM binaryFile.`/etc/passwd`
        SELECT * FROM parquet.`s3://x/y`
        SELECT TRANSFORM (id) USING 'sh -c id' FROM orders
        FROM orders INSERT INTO stolen SELECT *
        INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1
        ADD JAR '/tmp/x.jar'
        CACHE TABLE orders
        SET spark.sql.ansi.enabled = true
        SELECT * FROM read_files('/etc')
        CREATE TEMPORARY VIEW x AS SELECT 1
        EXECUTE IMMEDIATE 'DROP TABLE orders'
    """,
    "tsql": """
        SELECT 1 DROP TABLE orders
        SELECT 1 DELETE FROM orders
        SELECT 1 EXEC xp_cmdshell 'id'
        EXEC sp_configure
        SELECT * FROM OPENROWSET('SQLNCLI', 'x', 'SELECT 1')
        WAITFOR DELAY '0:0:10'
        SELECT * INTO stolen FROM orders
        SELECT NEXT VALUE FOR tickets
    """,
}


def writes(dialect: str) -> list[str]:
    """Programs that would change something."""
    return _programs(_WRITES_EVERYWHERE, WRITES.get(dialect, ""))


def all_of(dialect: str) -> list[str]:
    """Every program that must not pass in `dialect`."""
    return [*writes(dialect), *_programs(READS.get(dialect, ""))]


def _programs(*texts: str) -> list[str]:
    lines = (line.strip() for text in texts for line in text.strip().splitlines())
    return [line.replace("⏎", "\n") for line in lines if line]
