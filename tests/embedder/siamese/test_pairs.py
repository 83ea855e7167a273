"""Reading training data: formats, columns by name, labels, and every way they can be wrong."""

from __future__ import annotations

import gzip
import importlib.util
import json

import numpy as np
import pytest

from likewise.embedder.siamese import pair_files
from likewise.embedder.siamese.held_out import hold_out
from likewise.embedder.siamese.pair_files import read_rows
from likewise.embedder.siamese.pairs import PairData, make_pairs, read_pairs, shared_texts
from likewise.embedder.siamese.tasks import LOSSES, loss_kind
from likewise.errors import DataError, MissingExtra, UsageError

ROWS = [{"anchor": "如何輪換", "positive": 'the "key"'}, {"anchor": "備份", "positive": "a\nline"}]


class TestFormats:
    @pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "P.TSV.GZ"])
    def test_tables(self, tmp_path, name):
        separator = "\t" if "tsv" in name.lower() else ","
        text = separator.join(["anchor", "positive"]) + "\n"
        text += f'如何輪換{separator}"the ""key"""\n備份{separator}"a\nline"\n'
        content = ("\ufeff" + text).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.lower().endswith("gz") else content)
        assert read_rows(tmp_path / name) == ROWS

    @pytest.mark.parametrize("name", ["p.jsonl", "p.ndjson", "p.jsonl.gz"])
    def test_lines(self, tmp_path, name):
        content = "\n\n".join(json.dumps(row) for row in ROWS).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        assert read_rows(tmp_path / name) == ROWS

    @pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is an extra")
    def test_parquet(self, tmp_path):
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "p.parquet")
        assert read_rows(tmp_path / "p.parquet") == ROWS

    @pytest.mark.skipif(importlib.util.find_spec("datasets") is None, reason="datasets is an extra")
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_saved_data_sets(self, tmp_path):
        import datasets

        datasets.DatasetDict({"train": datasets.Dataset.from_list(ROWS)}).save_to_disk(tmp_path / "set")
        assert read_rows(tmp_path / "set") == ROWS
        with pytest.raises(DataError, match=r"split 'dev' in .*, found train"):
            read_rows(tmp_path / "set", split="dev")

    @pytest.mark.parametrize("source", ["p.parquet", "folder", "hub:owner/name"])
    def test_missing_libraries_are_named(self, tmp_path, monkeypatch, source):
        monkeypatch.setattr("likewise.extras.find_spec", lambda name: None)
        (tmp_path / "folder").mkdir()
        (tmp_path / "p.parquet").write_bytes(b"PAR1")
        with pytest.raises(MissingExtra, match="which is not installed") as caught:
            read_rows(source if source.startswith("hub:") else tmp_path / source)
        assert caught.value.remedy == "pip install 'likewise[data]'"

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("p.csv", b"", "expected a header line"),
            ("p.csv", b"a,b\n1,2,3\n", "line 2: expected 2 columns"),
            ("p.csv", b"a,b\n1\n", "line 2: expected 2 columns"),
            ("p.csv", b'a,b\n"1,2\n', "cannot read"),
            ("p.csv", b"a,b\n\xff,2\n", "cannot read"),
            ("p.csv.gz", b"a,b\n", "cannot read"),
            ("p.jsonl", b'{"a": 1}\nno\n', "line 2: expected a JSON object"),
            ("p.jsonl", b"[1]\n", "line 1: expected a JSON object, found list"),
            ("p.xlsx", b"", "expected a file .csv"),
        ],
    )
    def test_malformed(self, tmp_path, name, content, message):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=message):
            read_rows(tmp_path / name)
        with pytest.raises(DataError, match="there is no file"):
            read_rows(tmp_path / "absent.csv")

    @pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is an extra")
    def test_damaged_parquet(self, tmp_path):
        (tmp_path / "p.parquet").write_bytes(b"PAR1 and no more")
        with pytest.raises(DataError, match=r"cannot read .*p\.parquet"):
            read_rows(tmp_path / "p.parquet")

    @pytest.mark.skipif(importlib.util.find_spec("datasets") is None, reason="datasets is an extra")
    def test_a_folder_of_documents_is_no_data_set(self, tmp_path):
        (tmp_path / "keys.md").write_text("# Keys\n")
        with pytest.raises(DataError, match="a folder that the datasets library saved") as caught:
            read_rows(tmp_path)
        assert "likewise pairs" in caught.value.remedy

    @pytest.mark.parametrize("error", [FileNotFoundError("no such set"), ValueError("no such config")])
    def test_a_data_set_that_is_not_there(self, monkeypatch, error):
        class Library:
            @staticmethod
            def load_dataset(*arguments):
                raise error

        monkeypatch.setattr(pair_files, "require", lambda *a, **k: Library)
        with pytest.raises(DataError, match="cannot load the data set owner/name: no such"):
            read_rows("hub:owner/name")

    def test_the_parts_of_a_hub_name(self, monkeypatch):
        calls = []

        class Library:
            @staticmethod
            def load_dataset(*arguments):
                calls.append(arguments)
                return ROWS

        monkeypatch.setattr(pair_files, "require", lambda *a, **k: Library)
        for name in ("hub:glue", "hub:owner/name", "hub:owner/name/config"):
            assert read_rows(name) == ROWS
        assert calls == [("glue",), ("owner/name",), ("owner/name", "config")]


def make(rows, loss="ranking", **options):
    return make_pairs(rows, LOSSES[loss], name="data", **options)


class TestColumns:
    def test_order_does_not_matter(self):
        one = {"answer": "b", "negative_2": "d", "query": "a", "negative": "c"}
        data = make([one, one | {"query": "e"}])
        assert dict(data.columns) == {
            "anchor": ["a", "e"],
            "positive": ["b"] * 2,
            "negative_1": ["c"] * 2,
            "negative_2": ["d"] * 2,
        }
        assert list(data.columns) == ["anchor", "positive", "negative_1", "negative_2"]

    def test_more_than_nine_negatives_stay_in_order(self):
        row = {"anchor": "a", "positive": "b"} | {f"negative_{n}": str(n) for n in (11, 2, 1, 10)}
        assert list(make([row]).columns)[2:] == ["negative_1", "negative_2", "negative_10", "negative_11"]

    def test_names_can_be_given(self):
        rows = [{"claim": "a", "title": "b", "query": "c"}, {"claim": "d", "title": "e", "query": "f"}]
        data = make(rows, columns={"anchor": "claim", "positive": "title"})
        assert dict(data.columns) == {"anchor": ["a", "d"], "positive": ["b", "e"]}

    @pytest.mark.parametrize(
        ("row", "options", "message"),
        [
            ({"anchor": "a"}, {}, "needs the columns anchor, positive, found no positive among anchor"),
            ({"x": "a"}, {}, "found no anchor and no positive among x"),
            ({"query": "a", "anchor": "b", "positive": "c"}, {}, "anchor and query could both be the anchor"),
            ({"anchor": "a", "positive": "b", "label": 1}, {}, "would ignore the column 'label'"),
            ({"anchor": "a", "positive": "b"}, {"columns": {"anchor": "c"}}, "expected a column 'c'"),
            ({"anchor": "a", "positive": "b"}, {"columns": {"side": "a"}}, "expected the role"),
            (
                {"x": "a", "y": "b"},
                {"columns": {"anchor": "x", "positive": "x"}},
                "one column is named for two roles: x, x",
            ),
            (
                {"anchor": "a", "positive": "b", "negative": "c", "negative_1": "d"},
                {},
                "negative and negative_1 could both be negative_1",
            ),
            ({"anchor": "a", "positive": "b", "negative": "c"}, {"loss": "cosent"}, "found no label"),
            (
                {"anchor": "a", "positive": "b", "negative": "c", "score": 1},
                {"loss": "cosent"},
                "would ignore the column 'negative'",
            ),
        ],
    )
    def test_missing_ambiguous_or_ignored(self, row, options, message):
        with pytest.raises(DataError, match=message):
            make([row], **options)

    def test_a_column_can_be_ignored_on_purpose(self):
        rows = [{"anchor": "a", "positive": "b", "label": 1}]
        assert make(rows, columns={"label": ""}).labels is None
        both = [{"anchor": "a", "positive": "b", "negative": "c"}]
        assert list(make(both, columns={"negative_1": ""}).columns) == ["anchor", "positive"]

    def test_a_column_that_only_some_rows_have(self):
        rows = [{"anchor": "a", "positive": "b"}, {"anchor": "c", "positive": "d", "negative": "e"}]
        with pytest.raises(DataError, match="the first is row 1, column 'negative'"):
            make(rows)


class TestTexts:
    def test_empty_texts(self):
        rows = [
            {"anchor": "a", "positive": "b"},
            {"anchor": " ", "positive": "c"},
            {"anchor": "d", "positive": None},
        ]
        with pytest.raises(DataError, match=r"2 of 3 rows .* first is row 2, column 'anchor'") as caught:
            make(rows)
        assert "--skip-empty" in caught.value.remedy
        data = make(rows, skip_empty=True)
        assert len(data) == 1 and "2 rows with an empty text are left out" in data.notices[0]
        with pytest.raises(DataError, match="all 2 rows"):
            make(rows[1:], skip_empty=True)

    def test_identical_texts_teach_nothing(self):
        with pytest.raises(DataError, match="all texts are the same"):
            make([{"anchor": "a", "positive": "a "}] * 3)

    @pytest.mark.parametrize(
        ("rows", "side"),
        [
            ([{"anchor": "a", "positive": "b"}, {"anchor": "a ", "positive": "c"}], "anchor"),
            ([{"anchor": "a", "positive": "c"}, {"anchor": "b", "positive": "c"}], "positive"),
        ],
    )
    def test_one_side_that_is_always_the_same(self, rows, side):
        with pytest.raises(DataError, match=f"every row has the same {side}"):
            make(rows)
        assert len(make([row | {"negative": "n"} for row in rows])) == 2  # a negative is something to learn
        assert len(make([row | {"score": n} for n, row in enumerate(rows)], "cosine")) == 2

    @pytest.mark.parametrize("value", [["b", "c"], {"text": "b"}])
    def test_what_is_no_text(self, value):
        with pytest.raises(DataError, match="row 2: expected a text in the column 'positive', found"):
            make([{"anchor": "a", "positive": "b"}, {"anchor": "c", "positive": value}])

    def test_no_rows(self):
        with pytest.raises(DataError, match="at least one row"):
            make([])

    def test_numbers_are_texts_too(self):
        assert dict(make([{"anchor": 1, "positive": 2.5}]).columns) == {"anchor": ["1"], "positive": ["2.5"]}


def labels_of(loss, values, **options):
    rows = [{"sentence1": f"a{n}", "sentence2": "b", "label": value} for n, value in enumerate(values)]
    return make(rows, loss, **options)


class TestLabels:
    def test_scores(self):
        assert labels_of("cosine", ["-1", 0.25, "1e0"]).labels.tolist() == [-1, 0.25, 1]
        assert labels_of("cosent", [0, 5]).labels.tolist() == [0, 5]  # only their order counts
        rescaled = labels_of("cosine", [0, 2.5, 5], score_range=(0, 5)).labels
        assert rescaled.tolist() == [0, 0.5, 1] and rescaled.dtype == np.float32

    @pytest.mark.parametrize(
        ("loss", "values", "message"),
        [
            ("cosine", [0, 5.0], "from -1 to 1, the range of a cosine, found 0 to 5"),
            ("cosine", [-2, 0], "found -2 to 0"),
            ("cosine", [0.1, "high"], "row 2: expected a number, found 'high'"),
            ("cosine", [0.1, None], "row 2: expected a number, found None"),
            ("cosent", [0.1, float("nan")], "expected finite numbers, found nan"),
            ("cosent", [0.1, "inf"], "found inf"),
            ("contrastive", [0, 1, 2], "row 3: expected a label 0 or 1, found 2"),
            ("contrastive", [0, 0.5], "row 2: expected a label 0 or 1"),
            ("softmax", ["same", "same"], "at least two classes, found 1: same"),
            ("softmax", [1, 2], "count from 0, found 1, 2"),
            ("softmax", ["-", "-"], "at least two classes, found 0"),
            ("softmax", ["a", None, "b"], "row 2: expected a class, found None"),
            ("softmax", ["a", "b", " "], "row 3: expected a class"),
            ("cosent", [3, 3.0], "all scores are 3"),
        ],
    )
    def test_out_of_range(self, loss, values, message):
        with pytest.raises(DataError, match=message):
            labels_of(loss, values)

    def test_the_remedy_holds_the_scores(self):
        with pytest.raises(DataError) as caught:
            labels_of("cosine", [-3, 4.5])
        assert "--score-range -3 5" in caught.value.remedy
        assert labels_of("cosine", [-3, 4.5], score_range=(-3, 5)).labels.tolist() == [0, 0.9375]

    def test_a_range_must_hold_the_scores(self):
        with pytest.raises(DataError, match="expected scores from 0 to 4, found 0 to 5"):
            labels_of("cosine", [0, 5], score_range=(0, 4))

    def test_binary_words(self):
        assert labels_of("contrastive", ["true", "No", 1, "0.0"]).labels.tolist() == [1, 0, 1, 0]

    def test_classes(self):
        nli = labels_of("softmax", ["neutral", "-", "entailment", "contradiction", -1])
        assert nli.labels.tolist() == [2, 1, 0] and nli.classes[1] == "entailment" and len(nli) == 3
        assert "2 rows without an agreed class" in nli.notices[0]
        other = labels_of("softmax", ["b", "a", "b"])
        assert other.labels.tolist() == [1, 0, 1] and other.classes == ("a", "b")
        assert labels_of("softmax", ["0", 1, 2.0]).labels.tolist() == [0, 1, 2]

    def test_margins(self):
        row = {"query": "a", "positive": "b", "negative_1": "c", "negative_2": "d", "margins": [0.5, -1]}
        assert make([row], "margin-mse").labels.tolist() == [[0.5, -1.0]]
        with pytest.raises(DataError, match="row 1: expected 2 margins, found 1"):
            make([row | {"margins": 0.5}], "margin-mse")

    def test_unknown_loss(self):
        with pytest.raises(UsageError, match="unknown loss 'infonce'; expected one of ranking"):
            loss_kind("infonce")


class TestHeldOut:
    def test_no_text_stands_on_both_sides(self):
        rows = [{"anchor": f"a{n % 30}", "positive": f"p{n // 4}"} for n in range(90)]
        rows += [{"anchor": f"x{n}", "positive": f"y{n}"} for n in range(60)]
        training, held = hold_out(make(rows), 0.2, seed=1)
        assert len(training) + len(held) == 150 and 20 <= len(held) <= 30
        sides = [{text for texts in data.columns.values() for text in texts} for data in (training, held)]
        assert not sides[0] & sides[1]
        assert shared_texts([training], held) == 0
        again, _ = hold_out(make(rows), 0.2, seed=1)
        other, _ = hold_out(make(rows), 0.2, seed=2)
        assert training.columns == again.columns != other.columns

    def test_labels_go_with_their_rows(self):
        data = labels_of("cosine", [n / 40 for n in range(40)])
        apart = PairData(
            "d", {"anchor": data.columns["anchor"], "positive": data.columns["anchor"]}, data.labels
        )
        training, held = hold_out(apart, 0.25, seed=0)
        assert len(held) == 10
        for part in (training, held):
            assert part.labels.tolist() == pytest.approx([int(t[1:]) / 40 for t in part.columns["anchor"]])

    def test_exact_duplicates_are_counted_whatever_their_order(self):
        train = PairData("t", {"anchor": ["a", "c"], "positive": ["b", "d"]})
        dev = PairData("d", {"anchor": ["b", "c", " c"], "positive": ["a", "x", "d"]})
        assert shared_texts([train], dev) == 2
        # Once each, in however many data sets, and whatever negatives stand beside them.
        mined = PairData("m", {"anchor": ["a"], "positive": ["b"], "negative_1": ["n"]})
        assert shared_texts([train, mined], dev) == 2 and shared_texts([mined], dev) == 1

    def test_mined_negatives_tie_no_rows(self):
        """Each negative is the positive of another row, so that ties over negatives would tie all rows."""
        columns = {
            "anchor": [f"a{n}" for n in range(40)],
            "positive": [f"p{n}" for n in range(40)],
            "negative_1": [f"p{(n + 1) % 40}" for n in range(40)],
        }
        training, held = hold_out(PairData("d", columns), 0.25, seed=0)
        assert (len(training), len(held)) == (30, 10)


def test_real_data(data_dir):
    stsb = read_pairs(data_dir / "stsb" / "stsb-en-dev.csv", LOSSES["cosine"], score_range=(0, 5))
    assert len(stsb) == 1500 and stsb.labels.min() >= 0 and stsb.labels.max() == 1
    snli = read_pairs(data_dir / "snli" / "snli-dev.tsv.gz", LOSSES["softmax"])
    assert len(snli) == 9842 and snli.classes[0] == "contradiction"
    ocnli = read_pairs(data_dir / "ocnli" / "dev.jsonl", LOSSES["softmax"])
    assert set(ocnli.labels.tolist()) == {0, 1, 2}
