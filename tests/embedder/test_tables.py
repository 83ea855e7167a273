from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.embedder.tables import find_splits, read_table
from likewise.errors import DataError

CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\ufeff"), max_size=12)


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.CSV.gz"])
def test_csv_keeps_quotes_line_breaks_and_chinese(tmp_path, name):
    path = write(tmp_path / name, '\ufefftext,label\r\n"He said ""no"",\nthen left",neg\r\n很好。,正面\r\n')
    table = read_table(path)
    assert table.columns == ("text", "label")
    assert [row["text"] for row in table.rows] == ['He said "no",\nthen left', "很好。"]
    assert [row["label"] for row in table.rows] == ["neg", "正面"]


def test_tsv_with_literal_quotes_is_told_from_one_with_quoting(tmp_path):
    literal = write(tmp_path / "l.tsv", 'text\tlabel\n" the witness said\t1\nAmrozi " again\t0\n"end\t1\n')
    assert [row["text"] for row in read_table(literal).rows] == [
        '" the witness said',
        'Amrozi " again',
        '"end',
    ]
    quoted = write(tmp_path / "q.tsv", 'text\tlabel\n"a ""b"" c"\t1\n"two\nlines"\t0\n')
    assert [row["text"] for row in read_table(quoted).rows] == ['a "b" c', "two\nlines"]


@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_what_the_csv_writer_wrote_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    assert [(row["a"], row["b"]) for row in read_table(path).rows] == rows


def test_a_cell_of_a_megabyte(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\n" + "word " * 200_000 + ",x\n")
    limit = csv.field_size_limit()
    assert len(read_table(path).rows[0]["text"]) == 1_000_000
    assert csv.field_size_limit() == limit


def test_names_for_a_file_without_a_header(tmp_path):
    path = write(tmp_path / "a.tsv", "1\tgood\n0\tbad\n")
    assert read_table(path, columns=["label", "text"]).rows[1] == {"label": "0", "text": "bad"}


def test_json_lines_and_json_fill_missing_keys_and_keep_types(tmp_path):
    rows = [{"text": "a", "label": 1}, {"text": "b", "score": 0.5}]
    lines = write(
        tmp_path / "a.jsonl.gz", "\n".join(map(json.dumps, rows)) + '\n\n{"text": "c", "label": NaN}\n'
    )
    table = read_table(lines)
    assert table.columns == ("text", "label", "score")
    assert table.rows[1] == {"text": "b", "label": None, "score": 0.5}
    assert math.isnan(table.rows[2]["label"])
    assert read_table(write(tmp_path / "a.json", json.dumps(rows))).rows == table.rows[:2]


def test_parquet_and_a_saved_data_set(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    datasets = pytest.importorskip("datasets")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": ["a", None], "label": [1, 2]}), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").rows == ({"text": "a", "label": 1}, {"text": None, "label": 2})
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    part = datasets.Dataset.from_dict({"text": ["x", "y", "z"], "label": [1, 0, -1]}, features=features)
    datasets.DatasetDict({"train": part, "validation": part}).save_to_disk(str(tmp_path / "set"))
    table = read_table(tmp_path / "set", split="dev")
    assert [row["label"] for row in table.rows] == ["pos", "neg", None]
    with pytest.raises(DataError, match=r"expected a split test or testing .* found train, validation"):
        read_table(tmp_path / "set", split="test")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "text,label\na,b,c\n", r"expected 2 columns \(text, label\).*found 3 at line 2"),
        ("a.csv", "text,text\na,b\n", "different names"),
        ("a.csv", "", "at least one row"),
        ("a.csv", "text,label\n", "at least one row"),
        ("a.xls", "text", "suffixes"),
        ("a.jsonl", '{"a": 1}\n{"a"\n', "line 2"),
        ("a.jsonl", "[1]\n", "found list at number 1"),
        ("a.json", '{"a": 1}', "a list of objects"),
        ("a.parquet", "no parquet", "as Parquet"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path / name, text))


def test_other_encodings_and_missing_files_have_a_remedy(tmp_path):
    (tmp_path / "big5.csv").write_bytes("text,label\n很好,正\n".encode("big5"))
    with pytest.raises(DataError, match="UTF-8") as caught:
        read_table(tmp_path / "big5.csv")
    assert "iconv" in str(caught.value.remedy)
    (tmp_path / "broken.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="cannot read"):
        read_table(tmp_path / "broken.csv.gz")
    with pytest.raises(DataError, match="no file"):
        read_table(tmp_path / "none.csv")


def test_splits_of_a_folder(tmp_path):
    for name in ("sst2-train.tsv.gz", "validation.csv", "test.jsonl", "README.md"):
        write(tmp_path / name, "x")
    found = find_splits(tmp_path)
    assert {part: path.name for part, path in found.items()} == {
        "train": "sst2-train.tsv.gz",
        "dev": "validation.csv",
        "test": "test.jsonl",
    }
    write(tmp_path / "train.csv", "x")  # a whole name wins over a part of one
    assert find_splits(tmp_path)["train"].name == "train.csv"
    write(tmp_path / "train.tsv", "x")
    with pytest.raises(DataError, match=r"train\.csv and train\.tsv"):
        find_splits(tmp_path)


@pytest.mark.data
def test_published_files(data_dir):
    sizes = {"mrpc/mrpc-train.tsv.gz": 4076, "mr-polarity/mr.tsv.gz": 10662, "snli/snli-dev.tsv.gz": 9842}
    assert {name: len(read_table(data_dir / name)) for name in sizes} == sizes
