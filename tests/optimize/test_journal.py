"""Append-only lines: what a crash can leave behind is mended, nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput
from lynx_dspy.optimize.journal import Journal, lines, mend, write_whole


@given(
    ids=st.lists(st.text(min_size=1), max_size=5),
    tail=st.binary(max_size=200).filter(lambda b: b"\n" not in b),
)
def test_a_torn_tail_goes_and_whole_lines_stay(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str], tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("journal") / "j.jsonl"
    with Journal(path) as book:
        for id in ids:
            book.append({"id": id, "text": "a\nb\u2028"})
    with path.open("ab") as stream:
        stream.write(tail)
    with Journal(path) as book:
        book.append({"id": "last"})
    assert [line["id"] for line in lines(path)] == [
        *(id for i, id in enumerate(ids) if id not in ids[i + 1 :] and id != "last"),
        "last",
    ]


def test_every_cut_of_a_file_reads_as_its_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path) as book:
        for number in range(3):
            book.append({"id": str(number), "text": "ä" * number})
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        assert len(list(lines(path))) == whole[:cut].count(b"\n")
        with path.open("r+b") as stream:
            assert mend(stream) == cut - (whole[:cut].rfind(b"\n") + 1)


def test_a_tail_longer_than_a_block_goes_too(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"id": "1"}\n' + b"x" * 200_000)
    with Journal(path):
        assert path.read_bytes() == b'{"id": "1"}\n'


def test_the_last_line_of_an_id_counts(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path) as book:
        for id, value in (("a", 1), ("b", 2), ("a", 3)):
            book.append({"id": id, "value": value})
    assert list(lines(path)) == [{"id": "b", "value": 2}, {"id": "a", "value": 3}]


def test_two_runs_do_not_write_to_one_file(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.jsonl"), pytest.raises(BadInput, match="another run"):
        Journal(tmp_path / "j.jsonl")
    Journal(tmp_path / "j.jsonl").__exit__(None, None, None)


def test_what_is_no_record_is_told(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    assert list(lines(path)) == []
    path.write_text('{"id": "1"}\n[1]\n')
    with pytest.raises(BadInput, match=r"no record \(b'\[1\]"):
        list(lines(path))
    with pytest.raises(BadInput, match="Cannot write"):
        Journal(tmp_path / "no" / "j.jsonl")


def test_small_files_are_replaced_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.json", "old")
    write_whole(tmp_path / "a.json", "new \ud800")
    assert (tmp_path / "a.json").read_text() == "new \\ud800"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    with pytest.raises(BadInput, match="Cannot write"):
        write_whole(tmp_path / "no" / "a.json", "text")
