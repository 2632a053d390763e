"""CSV, TSV and Parquet files as a database: encodings, odd headers, types, borders."""

import os
from pathlib import Path

import duckdb
import pytest

from lynx_dspy.engines import connect
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import Status


def write(path: Path, content: str | bytes, encoding: str = "utf-8") -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def parquet(path: Path, query: str) -> Path:
    duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def test_a_folder_is_a_database(tmp_path: Path) -> None:
    write(tmp_path / "people.csv", "id,name,born\n1,Ann,2001-02-03\n2,Bob,\n")
    write(tmp_path / "my towns.tsv", "zip\tn\n00501\t1\n")
    parquet(tmp_path / "Sales.parquet", "SELECT range AS id FROM range(1000)")
    write(tmp_path / "README.md", "no table")
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub/other.csv", "a\n1\n")
    before = sorted(os.listdir(tmp_path))
    with connect(tmp_path) as db:
        schema = db.introspect()
        assert {t.name: t.row_count for t in schema.tables} == {
            **{"people": 2, "my towns": 1, "Sales": 1000}
        }
        people = schema.table("people")
        assert people
        assert [c.type for c in people.columns] == ["BIGINT", "VARCHAR", "DATE"]
        assert db.execute('SELECT zip FROM "my towns"').rows == (("00501",),)
        joined = db.execute("SELECT count(*) FROM people JOIN sales USING (id)")
        assert joined.rows == ((2,),)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le-bom"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = "stadt,größe\nKöln,“1”\n"
    if encoding == "utf-16-le-bom":
        path = write(tmp_path / "x.csv", b"\xff\xfe" + text.encode("utf-16-le"))
    else:
        path = write(tmp_path / "x.csv", text, encoding)
    with connect(path) as db:
        outcome = db.execute("FROM x")
        assert outcome.columns == ("stadt", "größe")
        assert outcome.rows == (("Köln", "“1”"),)


def test_latin_1_has_every_byte(tmp_path: Path) -> None:
    with connect(write(tmp_path / "x.csv", b"a,b\n\x81,\xe9\n")) as db:
        assert db.execute("FROM x").rows == (("\x81", "é"),)


@pytest.mark.parametrize(
    ("content", "columns", "rows"),
    [
        ('a,,a,"x ""q"" y",\n1,2,3,4,5\n', 5, ((1, 2, 3, 4, 5),)),
        ("name,city\nbob,paris\n", 2, (("bob", "paris"),)),
        ("a;b\n1,5;2\n", 2, (("1,5", 2),)),
        ("a,b\r\n1,2\r\n", 2, ((1, 2),)),
        ('a,b\n"two\nlines",2\n', 2, (("two\nlines", 2),)),
        ("a,b\n", 2, ()),
        ("only\nx\n", 1, (("x",),)),
    ],
)
def test_odd_headers_and_shapes(
    tmp_path: Path, content: str, columns: int, rows: tuple[tuple[object, ...], ...]
) -> None:
    with connect(write(tmp_path / "x.csv", content)) as db:
        outcome = db.execute("FROM x")
        assert len(set(outcome.columns)) == columns
        assert outcome.rows == rows


@pytest.mark.parametrize("name", ["it's.csv", "a b.csv", 'q"x.csv', "select.csv", "a[1]*?.csv"])
def test_names(tmp_path: Path, name: str) -> None:
    with connect(write(tmp_path / name, "a\n1\n")) as db:
        (table,) = db.introspect().tables
        assert table.name == name[:-4]
        quoted = table.name.replace('"', '""')
        assert db.execute(f'SELECT * FROM "{quoted}"').rows == ((1,),)


def test_a_parquet_name_with_glob_signs(tmp_path: Path) -> None:
    source = parquet(tmp_path / "plain.parquet", "SELECT 1 AS a")
    source.rename(tmp_path / "a[1].parquet")
    with connect(tmp_path) as db:
        assert db.execute('SELECT * FROM "a[1]"').rows == ((1,),)


def test_programs_reach_no_file_beside_the_tables(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    parquet(folder / "in.parquet", "SELECT 1 AS a")
    out = parquet(tmp_path / "out.parquet", "SELECT 2 AS a")
    with connect(folder) as db:
        for source in (f"'{out}'", f"e'{out}'", f"['{out}']", f"read_parquet('{out}')"):
            assert not db.execute(f"SELECT * FROM {source}").ran
        with pytest.raises(DatabaseError, match="disabled by configuration"):
            db.query(f"SELECT * FROM '{out}'")
        with pytest.raises(DatabaseError, match="read-only"):
            db.query("CREATE TABLE x (a INT)")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a.csv": ""}, "empty"),
        ({"a.csv": "x\0y\n"}, "zero bytes"),
        ({"a.csv": "x\n1\n", "A.tsv": "x\n1\n"}, "would both be the table"),
        ({"a.parquet": "PAR1 but cut"}, "a.parquet"),
        ({"b.txt": "x"}, "holds no tables"),
    ],
)
def test_says_what_is_wrong(tmp_path: Path, files: dict[str, str], says: str) -> None:
    for name, content in files.items():
        write(tmp_path / name, content)
    with pytest.raises(DatabaseError, match=says) as error:
        connect(tmp_path)
    assert "\n" not in str(error.value)


def test_a_vanished_file_is_unavailable_and_changes_the_fingerprint(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "a\n1\n")
    with connect(tmp_path) as db:
        before = db.fingerprint()
        path.unlink()
        assert db.execute("FROM x").status is Status.UNAVAILABLE
        assert db.fingerprint() != before


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("broken", ["1,2", "1,2,3,4", "1"])
def test_one_ragged_row_does_not_glue_the_columns(
    tmp_path: Path, separator: str, broken: str
) -> None:
    text = f"id,name,n\n1,Ann,2.5\n{broken}\n3,Bob,4\n".replace(",", separator)
    with connect(write(tmp_path / "x.csv", text)) as db:
        outcome = db.execute("SELECT id, name, n FROM x WHERE name IN ('Ann', 'Bob')")
        assert [row[:2] for row in outcome.rows] == [(1, "Ann"), (3, "Bob")]
        assert db.execute("SELECT count(*) FROM x").rows == ((3,),)


def test_a_cell_of_ten_megabytes(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "a,b\n" + "x" * 10_000_000 + ",1\n")
    with connect(path) as db:
        assert db.execute("SELECT length(a), b FROM x").rows == ((10_000_000, 1),)


def test_hidden_files_are_no_tables(tmp_path: Path) -> None:
    write(tmp_path / "x.csv", "a\n1\n")
    write(tmp_path / "._x.csv", b"\0\5\26\7")
    with connect(tmp_path) as db:
        assert [t.name for t in db.introspect().tables] == ["x"]


def test_the_error_names_the_broken_file_and_not_its_content(tmp_path: Path) -> None:
    write(tmp_path / "good.csv", "a\n1\n")
    write(tmp_path / "long.csv", "a,b\n" + "x" * 17_000_000 + ",1\n")
    with pytest.raises(DatabaseError, match=r"'long'.*size") as raised:
        connect(tmp_path)
    assert "xxx" not in str(raised.value)
