"""Train a subword vocabulary; `vocabulary_fit` tells how well it fits a language.

The result is an ordinary tokenizer folder that `AutoTokenizer` loads. Three algorithms, each with the
conventions of the model it became known with: WordPiece (BERT), byte-level BPE (GPT-2, RoBERTa) and Unigram
(ALBERT, XLM-R). The algorithms themselves are those of the `tokenizers` library; this module chooses
normalisation, word boundaries and special tokens, checks the outcome, and must not know any model.

Sources: Wu et al. 2016 (1609.08144) for WordPiece, Sennrich et al. 2016 (1508.07909) for BPE, Kudo 2018
(1804.10959) for Unigram.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from likewise.embedder.unigram_order import in_fixed_order
from likewise.errors import DataError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Algorithm = Literal["wordpiece", "bpe", "unigram"]
Chinese = Literal["split", "join"]

_BERT = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
_ROBERTA = {
    "cls_token": "<s>",
    "pad_token": "<pad>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
_ALBERT = {
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
_SPECIAL: dict[str, dict[str, str]] = {"wordpiece": _BERT, "bpe": _ROBERTA, "unigram": _ALBERT}
# The blocks that BERT calls Chinese characters; kana and hangul are not among them.
CJK = (
    r"[\u4E00-\u9FFF\u3400-\u4DBF\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F}"
    r"\x{2B820}-\x{2CEAF}\uF900-\uFAFF\x{2F800}-\x{2FA1F}]"
)


@dataclass(frozen=True, kw_only=True)
class VocabularySettings:
    """How to train a vocabulary.

    Attributes:
        algorithm: wordpiece, bpe (byte-level: no unknown tokens) or unigram.
        size: Tokens in the vocabulary, special ones included.
        shortfall: Whether to "refuse" or to "accept" fewer tokens where the text supports no more.
        lowercase: Fold case.
        strip_accents: Remove accents; None removes them where case is folded, as BERT does.
        chinese: "split" makes each Chinese character a word of its own, as BERT does; "join" leaves runs of
            them together, so that frequent words of several characters become tokens. Joined unigram is slow
            to train: a minute per million characters.
        min_frequency: Times that a pair must occur before it is merged (wordpiece and bpe).
        alphabet_limit: Most different characters that become tokens by themselves.
        extra_tokens: More special tokens, after the usual five.
        max_tokens: Longest sequence that the tokenizer announces.

    Raises:
        UsageError: A value outside its range.
    """

    algorithm: Algorithm = "wordpiece"
    size: int = 30_522
    shortfall: Literal["refuse", "accept"] = "refuse"
    lowercase: bool = True
    strip_accents: bool | None = None
    chinese: Chinese = "split"
    min_frequency: int = 2
    alphabet_limit: int = 8_000
    extra_tokens: tuple[str, ...] = ()
    max_tokens: int = 512

    def __post_init__(self) -> None:
        if self.algorithm not in _SPECIAL:
            raise UsageError(f"expected one of {', '.join(_SPECIAL)}, found {self.algorithm!r}")
        if self.chinese not in get_args(Chinese):
            raise UsageError(f"expected Chinese characters to split or to join, found {self.chinese!r}")
        least = len(self.special_tokens) + (256 if self.algorithm == "bpe" else 1)
        if self.size < least:
            raise UsageError(
                f"expected a vocabulary of at least {least} tokens for {self.algorithm}, found {self.size}"
            )
        if len(set(self.special_tokens)) < len(self.special_tokens):
            raise UsageError(f"expected different special tokens, found {', '.join(self.special_tokens)}")

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """All special tokens, in the order of their ids."""
        return (*_SPECIAL[self.algorithm].values(), *self.extra_tokens)


def train_vocabulary(
    texts: Iterable[str],
    settings: VocabularySettings,
    *,
    segment: Callable[[str], Sequence[str]] | None = None,
) -> PreTrainedTokenizerFast:
    """Train a tokenizer.

    The same texts give the same tokens with the same ids (with unigram unless two pieces are equal to the
    fourteenth digit where the vocabulary ends: its trainer adds up in random order, see `unigram_order`).

    Args:
        texts: Any number of texts of any length, of which only word counts are held in memory. Read twice for
            wordpiece; an iterator, which can be read only once, is then kept whole.
        settings: Algorithm, size and the rest.
        segment: Splits a text into words, for Chinese joined, see `segmenters`: tokens then never cross these
            word boundaries in training. Use needs no segmenter. Not for wordpiece, where a word inside a run
            of Chinese is another token ("##word") than the word that training sees.

    Returns:
        A tokenizer; `save_pretrained(folder)` writes it.

    Raises:
        DataError: No text, or too little for a vocabulary of this size.
        UsageError: A segmenter for wordpiece, or for Chinese that is split anyway.

    Example:
        >>> texts = ["low lower lowest", "new newer newest", "wide wider widest"] * 5
        >>> tokenizer = train_vocabulary(texts, VocabularySettings(size=40))
        >>> tokenizer.tokenize("Newest LOW")
        ['newest', 'low']
    """
    from transformers import PreTrainedTokenizerFast

    if segment is not None and (settings.algorithm == "wordpiece" or settings.chinese == "split"):
        raise UsageError(
            "a segmenter needs bpe or unigram with Chinese joined, "
            f"found {settings.algorithm} with Chinese {'split' if settings.chinese == 'split' else 'joined'}",
            remedy="likewise tokenizer train CORPUS --algorithm bpe --chinese join --segmenter jieba",
        )
    seen = _Counter()
    if settings.algorithm == "wordpiece":
        if isinstance(texts, Iterator):
            texts = list(texts)
        continuations = _continuations(_segmented(texts, segment), settings)
        trainer = _trainer(settings, special_tokens=(*settings.special_tokens, *continuations))
    else:
        trainer = _trainer(settings)
    tokenizer = _untrained(settings)
    tokenizer.train_from_iterator(seen.over(_segmented(texts, segment)), trainer)
    if settings.algorithm == "wordpiece":  # without what was only called special
        trained, tokenizer = tokenizer, _untrained(settings, vocabulary=tokenizer.get_vocab())
        tokenizer.add_special_tokens(list(settings.special_tokens))
        assert trained.get_vocab() == tokenizer.get_vocab()
    elif settings.algorithm == "unigram":
        tokenizer.model = _ordered(tokenizer, settings)
    found = tokenizer.get_vocab_size()
    if not seen.characters:
        raise DataError(f"expected text to train a vocabulary on, found none in {seen.texts} documents")
    if found < settings.size and settings.shortfall == "refuse":
        raise DataError(
            f"expected text that supports a vocabulary of {settings.size} tokens; these {seen.characters} "
            f"characters support {found}",
            remedy=f"ask for a vocabulary of at most {found}, or give more text",
        )
    if found > settings.size:  # the alphabet alone is larger than what was asked for
        raise DataError(
            f"expected a vocabulary of {settings.size} tokens, but its characters and the special "
            f"tokens alone are {found}",
            remedy=f"ask for a vocabulary well above {found}, or limit the alphabet",
        )
    tokenizer.post_processor = _post_processor(settings, tokenizer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=settings.max_tokens,
        extra_special_tokens=list(settings.extra_tokens),
        **_SPECIAL[settings.algorithm],
    )


class _Counter:
    """Counts what passes through."""

    def __init__(self) -> None:
        self.texts = 0
        self.characters = 0

    def over(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            self.texts += 1
            self.characters += len(text.strip())
            yield text


def _segmented(texts: Iterable[str], segment: Callable[[str], Sequence[str]] | None) -> Iterator[str]:
    for text in texts:
        # Trainers reject lone surrogates; one damaged document must not end the training.
        text = text.encode("utf-8", "replace").decode("utf-8")
        yield text if segment is None else " ".join(segment(text))


def _continuations(texts: Iterable[str], settings: VocabularySettings) -> list[str]:
    """The letters that occur inside words, as "##a", sorted.

    The trainer of wordpiece numbers them as it meets them, in random order, and decides ties between pairs by
    these numbers. Told beforehand in a fixed order, as special tokens, they make its result a function of the
    texts.
    """
    letters = _untrained(settings)
    letters.train_from_iterator(texts, _trainer(settings, size=0))
    found = letters.get_vocab().keys() - set(settings.special_tokens)
    inside = {token for token in found if len(token) > 1}
    if settings.chinese == "join":
        # A run of Chinese can go on with any character, also one that began every run in these texts.
        inside |= {f"##{token}" for token in found if len(token) == 1 and _is_chinese(token)}
    return sorted(inside)


def _is_chinese(character: str) -> bool:
    ranges = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2CEAF), (0x2F800, 0x2FA1F))
    return any(low <= ord(character) <= high for low, high in ranges)


def _untrained(settings: VocabularySettings, vocabulary: dict[str, int] | None = None) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer(_model(settings, vocabulary))
    tokenizer.normalizer = _normalizer(settings)
    tokenizer.pre_tokenizer = _pre_tokenizer(settings)
    tokenizer.decoder = _decoder(settings)
    return tokenizer


def _model(settings: VocabularySettings, vocabulary: dict[str, int] | None) -> Any:
    from tokenizers import models

    special = _SPECIAL[settings.algorithm]
    if settings.algorithm == "wordpiece":
        # A run of joined Chinese characters is one word here; the usual limit of 100 would make it unknown.
        return models.WordPiece(
            vocabulary,
            unk_token=special["unk_token"],
            max_input_chars_per_word=100 if settings.chinese == "split" else 10_000,
        )
    return models.BPE() if settings.algorithm == "bpe" else models.Unigram()


def _ordered(tokenizer: Any, settings: VocabularySettings) -> Any:
    """The trained unigram model with its pieces in a fixed order, see `unigram_order`."""
    from tokenizers import models

    trained = json.loads(tokenizer.to_str())["model"]
    special = len(settings.special_tokens)
    pieces = [(piece, score) for piece, score in trained["vocab"]]
    return models.Unigram([*pieces[:special], *in_fixed_order(pieces[special:])], trained["unk_id"])


def _normalizer(settings: VocabularySettings) -> Any:
    from tokenizers import normalizers

    strip = settings.lowercase if settings.strip_accents is None else settings.strip_accents
    if settings.algorithm == "wordpiece":
        return normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=settings.chinese == "split",
            strip_accents=strip,
            lowercase=settings.lowercase,
        )
    steps: list[Any] = [normalizers.NFKC()] if settings.algorithm == "unigram" else [normalizers.NFC()]
    if strip:
        steps += [normalizers.NFD(), normalizers.StripAccents(), normalizers.NFC()]
    if settings.lowercase:
        steps.append(normalizers.Lowercase())
    return normalizers.Sequence(steps)


def _pre_tokenizer(settings: VocabularySettings) -> Any:
    from tokenizers import Regex, pre_tokenizers

    steps: list[Any] = []
    if settings.algorithm == "wordpiece":
        if settings.chinese == "join":  # a run of Chinese does not stick to Latin letters or digits
            steps.append(pre_tokenizers.Split(Regex(f"{CJK}+"), "isolated"))
        steps.append(pre_tokenizers.BertPreTokenizer())
    else:
        run = CJK if settings.chinese == "split" else f"{CJK}+"
        steps.append(pre_tokenizers.Split(Regex(run), "isolated"))
        if settings.algorithm == "bpe":
            steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False))
        else:
            # Without this, "end." and "end" become unrelated tokens.
            steps.append(pre_tokenizers.Punctuation("isolated"))
            steps.append(pre_tokenizers.Metaspace(prepend_scheme="first"))
    return pre_tokenizers.Sequence(steps)


def _decoder(settings: VocabularySettings) -> Any:
    from tokenizers import decoders

    if settings.algorithm == "wordpiece":
        return decoders.WordPiece(prefix="##")
    return decoders.ByteLevel() if settings.algorithm == "bpe" else decoders.Metaspace(prepend_scheme="first")


def _trainer(
    settings: VocabularySettings, *, size: int | None = None, special_tokens: Sequence[str] | None = None
) -> Any:
    from tokenizers import pre_tokenizers, trainers

    common = {
        "vocab_size": settings.size if size is None else size,
        "special_tokens": list(special_tokens or settings.special_tokens),
        "show_progress": False,
    }
    if settings.algorithm == "unigram":
        return trainers.UnigramTrainer(unk_token=_SPECIAL["unigram"]["unk_token"], **common)
    common["min_frequency"] = settings.min_frequency
    if settings.algorithm == "bpe":
        return trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **common)
    return trainers.WordPieceTrainer(
        continuing_subword_prefix="##", limit_alphabet=settings.alphabet_limit, **common
    )


def _post_processor(settings: VocabularySettings, tokenizer: Any) -> Any:
    """Frames a text as [CLS] text [SEP], a pair as [CLS] text [SEP] text [SEP]."""
    from tokenizers import processors

    special = _SPECIAL[settings.algorithm]
    cls, sep = special["cls_token"], special["sep_token"]
    return processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (cls, sep)],
    )
