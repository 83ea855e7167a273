"""A student that learns Chinese from an English teacher, on a model that trains in seconds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from likewise import Encoder
from likewise.embedder.events import Progress
from likewise.embedder.growth.parallel import GrowthSettings, distil_parallel, new_tokens, read_parallel
from likewise.embedder.siamese.pairs import PairData
from likewise.embedder.siamese.settings import SiameseSettings
from likewise.embedder.siamese.tasks import LossSettings
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import DataError, UsageError

from .conftest import CHINESE, ENGLISH

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def pairs() -> PairData:
    generator = np.random.default_rng(1)
    english, chinese = [], []
    for _ in range(160):
        words = generator.choice(len(CHINESE), size=int(generator.integers(2, 5)), replace=False)
        english.append(" ".join(ENGLISH[at] for at in words))
        # Back to front, so that the first rows, which know nothing of order, are not the best ones.
        chinese.append("".join(CHINESE[at] for at in words[::-1]))
    return PairData("pairs", {"anchor": english, "positive": chinese})


def settings(base: Path, **changes) -> SiameseSettings:
    loop = {"epochs": 8, "learning_rate": 1e-2, "precision": "float32", "log_every": 5, "weight_decay": 0.0}
    loop |= changes.pop("loop", {})
    return SiameseSettings(
        training=TrainingSettings(**loop), encoder=str(base), batch_size=16, device="cpu", **changes
    )


@pytest.mark.parametrize("rows_only", [True, False])
def test_the_translation_comes_near_the_original(
    english_model: Path, pairs: PairData, tmp_path: Path, rows_only: bool
) -> None:
    losses: list[float] = []
    result = distil_parallel(
        str(english_model),
        [pairs],
        tmp_path / "student",
        settings(english_model, loop={"learning_rate": 3e-3 if rows_only else 1e-3}),
        GrowthSettings(rows_only=rows_only),
        loss=LossSettings(contrast=0.1),
        listeners=[lambda e: losses.append(e.metrics["loss"]) if isinstance(e, Progress) else None],
    )
    if not rows_only:  # whose first values, from the alignment, leave little to gain with words this few
        assert losses[-1] < 0.7 * losses[0]
    assert result.training.status == "finished"
    before = Encoder.load(english_model, runtime="torch")
    after = Encoder.load(tmp_path / "student", runtime="torch")
    english, chinese = ["old key", "red gate turn", "new vault lock"], ["钥旧", "转闸红", "锁库新"]
    wanted = before.encode_passages(english)
    found = (after.encode_passages(chinese) * wanted).sum(axis=1)
    assert found.min() > 0.9
    assert found.min() > (before.encode_passages(chinese) * wanted).sum(axis=1).max()
    texts = [*english, "unseen words here", ""]
    held = (after.encode_passages(texts) * before.encode_passages(texts)).sum(axis=1)
    if rows_only:
        np.testing.assert_array_equal(after.encode_passages(texts), before.encode_passages(texts))
    assert held.min() > 0.97


def test_the_output_of_pairs_can_be_given_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"anchor": "key", "positive": "钥", "kind": "parallel", "source": "en/a.md"},
        {"anchor": "lock", "positive": "锁", "kind": "parallel", "source": "en/a.md"},
        {"anchor": "A title", "positive": "its text", "kind": "title", "source": "en/a.md"},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    assert read_parallel(path).columns == {"anchor": ["key", "lock"], "positive": ["钥", "锁"]}
    path.write_text(json.dumps(rows[2]), "utf-8")
    with pytest.raises(DataError, match="the kind parallel, found none"):
        read_parallel(path)


def test_languages_as_column_names(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("en\tzh\nkey\t钥\nlock\t锁\n", "utf-8")
    assert read_parallel(path).columns == {"anchor": ["key", "lock"], "positive": ["钥", "锁"]}
    path.write_text("de\tzh\nSchluessel\t钥\nSchloss\t锁\n", "utf-8")
    assert (
        read_parallel(path, columns={"anchor": "de", "positive": "zh"}).columns["anchor"][0] == "Schluessel"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("anchor\tother\nkey\t钥\n", "found no positive among anchor, other"),
        ("anchor\tpositive\nkey\t \nlock\t锁\n", "1 of 2 rows have an empty text"),
        ("anchor\tpositive\n\t钥\nlock\t锁\n", "row 1, column 'anchor'"),
        ("anchor\tpositive\n", "at least one row"),
    ],
)
def test_bad_input(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(content, "utf-8")
    with pytest.raises(DataError, match=message):
        read_parallel(path)


def test_nothing_to_add_leaves_no_rows_to_train(english_model: Path, tmp_path: Path) -> None:
    pairs = PairData("same", {"anchor": ["key", "lock", "door"], "positive": ["old key", "locks", "a door"]})
    with pytest.raises(UsageError, match="lacks nothing") as caught:
        distil_parallel(
            str(english_model), [pairs], tmp_path, settings(english_model), GrowthSettings(rows_only=True)
        )
    assert "--rows-only" in (caught.value.remedy or "")


def test_frequent_characters_and_words_are_chosen(english_model: Path) -> None:
    tokenizer = Encoder.load(english_model, runtime="torch")._tokenizer
    texts = ["钥匙，门", "钥匙门", "锁"]
    assert new_tokens(texts, tokenizer, GrowthSettings()) == ["匙", "钥"]
    assert new_tokens(texts, tokenizer, GrowthSettings(least=1)) == ["匙", "钥", "锁", "，"]

    def segment(text: str) -> list[str]:
        return text.replace("钥匙", "/钥匙/").split("/")

    assert new_tokens(texts, tokenizer, GrowthSettings(words=9, segment=segment)) == ["匙", "钥", "钥匙"]


@pytest.mark.parametrize("options", [{"least": 0}, {"words": -1}, {"words": 5}])
def test_growth_settings_out_of_range(options: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        GrowthSettings(**options)


def test_rows_alone_leave_nothing_to_freeze_or_blend(english_model: Path) -> None:
    for changes in ({"freeze": 0}, {"blend": 0.5}):
        with pytest.raises(UsageError, match="rows trained alone"):
            settings(english_model, rows=((1,),), **changes)
