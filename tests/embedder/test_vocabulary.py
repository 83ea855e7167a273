from __future__ import annotations

import json

import pytest
from transformers import AutoTokenizer

from likewise.embedder.vocabulary import VocabularySettings, train_vocabulary
from likewise.embedder.vocabulary_fit import vocabulary_fit
from likewise.errors import DataError, UsageError

ENGLISH = [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps on.",
    "Encoders turn a text into a vector; similar texts have similar vectors.",
    "Café owners résumé their naïve plans: unaffable, unbelievable, undone.",
] * 20
TRADITIONAL = ["中文分詞很重要，繁體中文也一樣。", "我們把文件切成段落，然後計算向量。"] * 20
SIMPLIFIED = ["中文分词很重要，简体中文也一样。", "我们把文件切成段落，然后计算向量。"] * 20
TEXTS = ENGLISH + TRADITIONAL + SIMPLIFIED
SIZES = {"wordpiece": 180, "bpe": 420, "unigram": 90}
SAMPLE = "The unaffable Fox 切成段落"


def train(algorithm="wordpiece", **changes):
    return train_vocabulary(
        TEXTS, VocabularySettings(algorithm=algorithm, size=changes.pop("size", SIZES[algorithm]), **changes)
    )


def largest(texts, **changes):
    """Nearly the largest vocabulary that the texts support: how large varies a little with random ties."""
    segment = changes.pop("segment", None)
    with pytest.raises(DataError) as caught:
        train_vocabulary(texts, VocabularySettings(size=30_000, **changes), segment=segment)
    size = int(caught.value.remedy.split("at most ")[1].split(",")[0]) * 97 // 100
    return train_vocabulary(texts, VocabularySettings(size=size, **changes), segment=segment)


@pytest.mark.parametrize("algorithm", SIZES)
@pytest.mark.parametrize("chinese", ["split", "join"])
@pytest.mark.parametrize("model_type", [None, "bert", "roberta", "albert", "electra", "distilbert"])
def test_auto_tokenizer_loads_what_was_trained(tmp_path, algorithm, chinese, model_type):
    tokenizer = train(algorithm, chinese=chinese, max_tokens=77)
    tokenizer.save_pretrained(tmp_path)
    if model_type is not None:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert len(loaded) == SIZES[algorithm]
    assert loaded.model_max_length == 77
    assert loaded(SAMPLE)["input_ids"] == tokenizer(SAMPLE)["input_ids"]
    assert loaded.all_special_ids == tokenizer.all_special_ids
    pair = loaded("the dog", "a text")
    assert pair["input_ids"].count(loaded.sep_token_id) == 2
    assert pair["input_ids"][0] == loaded.cls_token_id and pair["input_ids"][-1] == loaded.sep_token_id
    assert loaded.mask_token_id is not None and loaded.pad_token_id is not None


@pytest.mark.parametrize("algorithm", SIZES)
def test_same_texts_give_the_same_vocabulary(algorithm):
    first, *others = [json.loads(train(algorithm).backend_tokenizer.to_str())["model"] for _ in range(4)]
    assert all(other == first for other in others)


def test_wordpiece_is_a_function_of_the_texts_whatever_their_ties():
    # Every pair of letters is as frequent as every other one.
    texts = [a + b + c for a in "abcdef" for b in "ghijkl" for c in "mnopqr"] * 2
    settings = VocabularySettings(size=60)
    first = train_vocabulary(texts, settings)
    assert all(train_vocabulary(texts, settings).get_vocab() == first.get_vocab() for _ in range(5))
    assert train_vocabulary(iter(texts), settings).get_vocab() == first.get_vocab()
    assert not [token for token in first.all_special_tokens if token.startswith("##")]


class TestWordPiece:
    def test_continuations_are_marked(self):
        tokens = train().tokenize("unaffable undone")
        assert "".join(token.removeprefix("##") for token in tokens) == "unaffableundone"
        assert any(token.startswith("##") for token in tokens)

    def test_special_tokens_come_first(self):
        tokenizer = train(extra_tokens=("[DATE]",))
        expected = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[DATE]"]
        assert tokenizer.convert_ids_to_tokens(range(6)) == expected
        assert tokenizer.tokenize("[DATE]") == ["[DATE]"]

    def test_case_and_accents(self):
        assert "".join(train().tokenize("Café")).replace("##", "") == "cafe"
        kept = largest(TEXTS, lowercase=False)
        assert "".join(kept.tokenize("Café")).replace("##", "") == "Café"
        folded = largest(TEXTS, strip_accents=False)
        assert "".join(folded.tokenize("Café")).replace("##", "") == "café"

    def test_chinese_split_or_joined(self):
        assert train().tokenize("中文分詞") == ["中", "文", "分", "詞"]
        joined = largest(TEXTS, chinese="join")
        assert len(joined.tokenize("中文分詞很重要")) <= 3

    def test_joined_chinese_next_to_latin_letters_and_longer_than_any_limit(self):
        joined = largest(TEXTS, chinese="join")
        assert joined.tokenize("dog中文")[0] == "dog"
        assert joined.unk_token not in joined.tokenize("中文" * 500)

    def test_joined_runs_go_on_with_characters_that_only_began_one(self):
        texts = ["中文。", "分詞。", "很好。"] * 20
        joined = train_vocabulary(texts, VocabularySettings(size=30, chinese="join", shortfall="accept"))
        assert joined.tokenize("中文分詞") == ["中文", "##分", "##詞"]

    def test_a_segmenter_is_refused(self):
        with pytest.raises(UsageError, match="needs bpe or unigram with Chinese joined, found wordpiece"):
            train_vocabulary(["中文"], VocabularySettings(size=30, chinese="join"), segment=list)


def test_a_segmenter_keeps_tokens_inside_words():
    def words(text):
        return [text[:2], text[2:4], text[4:]]

    found = {}
    for segment in (None, words):
        settings = VocabularySettings(algorithm="bpe", size=300, chinese="join", shortfall="accept")
        trained = train_vocabulary(["中文分詞很重要"] * 9, settings, segment=segment)
        found[segment] = [trained.decode([at]).strip() for at in range(len(trained))]
        assert trained.tokenize("中文") != []
    assert "中文分詞很重要" in found[None]
    assert {"中文", "分詞", "很重要"} <= set(found[words])
    assert not any("文分" in token or "詞很" in token for token in found[words])


def test_bpe_has_no_unknown_text():
    tokenizer = train("bpe")
    text = "Unseen: 🦊 한국어"
    assert tokenizer.unk_token_id not in tokenizer(text)["input_ids"]
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text.lower()


class TestFit:
    def test_counts_by_hand(self):
        tokenizer = train_vocabulary(["aa ab ba bb"] * 9, VocabularySettings(size=13))
        fit = vocabulary_fit(tokenizer, ["aa bb", "水 ab [MASK]"], language="en")
        # [MASK] in a text is "[", "mask", "]": three unknown words of one, four and one characters.
        assert (fit.characters, fit.tokens, fit.unknown_tokens) == (13, 7, 4)
        assert fit.covered == pytest.approx(1 - 7 / 13)
        assert fit.characters_per_token == pytest.approx(13 / 7)
        assert fit.unknown_rate == pytest.approx(4 / 7)
        assert fit.used == 4

    def test_per_language(self):
        tokenizer = train_vocabulary(ENGLISH, VocabularySettings(size=150))
        english = vocabulary_fit(tokenizer, ENGLISH, language="en")
        chinese = vocabulary_fit(tokenizer, TRADITIONAL, language="zh-Hant")
        assert english.covered == 1.0 and english.unknown_rate == 0.0
        assert chinese.covered < 0.1 and chinese.unknown_rate > 0.9

    def test_no_text(self):
        fit = vocabulary_fit(train(), [], language="en")
        assert (fit.tokens, fit.characters_per_token, fit.unknown_rate, fit.covered) == (0, 0.0, 0.0, 1.0)


class TestErrors:
    @pytest.mark.parametrize("algorithm", SIZES)
    def test_larger_than_the_corpus_supports(self, algorithm):
        with pytest.raises(DataError, match="supports a vocabulary of 30000"):
            train(algorithm, size=30_000)
        assert len(largest(TEXTS, algorithm=algorithm)) > 80

    def test_alphabet_larger_than_asked_for(self):
        with pytest.raises(DataError, match="its characters and the special tokens alone are"):
            train(size=30)

    @pytest.mark.parametrize("texts", [[], [""], ["", " \n\t"]])
    def test_no_text(self, texts):
        with pytest.raises(DataError, match="expected text"):
            train_vocabulary(texts, VocabularySettings(size=100))

    def test_lone_surrogates_do_not_end_the_training(self):
        tokenizer = train_vocabulary([*ENGLISH, "broken \ud83d text"], VocabularySettings(size=100))
        assert vocabulary_fit(tokenizer, ["\ud83d"], language="").characters == 1

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"algorithm": "morfessor"}, "wordpiece, bpe, unigram"),
            ({"chinese": "guess"}, "to split or to join"),
            ({"size": 5}, "at least 6 tokens for wordpiece"),
            ({"algorithm": "bpe", "size": 200}, "at least 261 tokens for bpe"),
            ({"extra_tokens": ("[MASK]",)}, "different special tokens"),
        ],
    )
    def test_settings(self, changes, message):
        with pytest.raises(UsageError, match=message):
            VocabularySettings(**changes)
