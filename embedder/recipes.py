"""Named ways to pretrain: which objective, which masking, which pairs, which model options go together.

Each recipe follows its paper, and says where it does not. A recipe is not a size: any of them runs at any
shape of `presets.py`. It holds no training loop and no corpus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from likewise.embedder.bert import BertConfig
from likewise.embedder.layer_cut import cut_layers, spread_layers
from likewise.embedder.masking import Masking
from likewise.embedder.masking_vocabulary import MaskingVocabulary
from likewise.embedder.objectives import Objective
from likewise.embedder.objectives.causal import CausalLanguageModelling
from likewise.embedder.objectives.distillation import Distillation
from likewise.embedder.objectives.joint import Joint
from likewise.embedder.objectives.mlm import MaskedLanguageModelling
from likewise.embedder.objectives.nsp import NextSentencePrediction
from likewise.embedder.objectives.rtd import ReplacedTokenDetection
from likewise.embedder.objectives.sop import SentenceOrderPrediction
from likewise.embedder.pretraining import PretrainingModel, ReplacedTokenModel
from likewise.errors import UsageError

#: What an example of a recipe is: a single text, or a pair for one of the sentence-level objectives.
PairKind = Literal["none", "nsp", "sop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One way to pretrain.

    Attributes:
        name: Short name, as on the command line.
        paper: Where it was published.
        idea: What is special about it, in a sentence.
        differs: Where this implementation departs from the paper.
        pairs: Which examples it wants, see `sentence_pairs.py`.
        masking: How it masks; None if it does not.
        options: Settings of `BertConfig` that make the model what it is; they go over those of the size.
        head: Kind of the token head.
        teacher: Whether it needs one.
    """

    name: str
    paper: str
    idea: str
    differs: str
    pairs: PairKind = "none"
    masking: Masking | None = field(default_factory=Masking)
    options: Mapping[str, Any] = field(default_factory=dict)
    head: Literal["transform", "direct"] = "transform"
    teacher: bool = False

    def config(self, size: BertConfig, **changes: Any) -> BertConfig:
        """Shape of a model for this recipe.

        Args:
            size: Width, depth and the like, as from `presets.preset`.
            changes: Settings that go over everything, such as the vocabulary size of the tokenizer.

        Example:
            >>> from likewise.embedder.presets import preset
            >>> config = RECIPES["albert"].config(preset("tiny"), vocab_size=8000)
            >>> config.shared_layers, config.embedding_size, config.vocab_size
            (True, 64, 8000)
        """
        options = dict(self.options)
        if "embedding_size" in options:
            # Half the width at most: at small sizes a table of the published 128 would save nothing.
            options["embedding_size"] = min(options["embedding_size"], max(1, size.hidden_size // 2))
        return replace(size, **{**options, **changes})

    def model(
        self, config: BertConfig, *, teacher: PretrainingModel | None = None
    ) -> PretrainingModel | ReplacedTokenModel:
        """A new model with the heads that the recipe trains.

        Args:
            config: From `config`.
            teacher: For distillation: the student is a copy of it with `config.layers` layers.

        Raises:
            UsageError: A teacher is needed or makes no sense.
        """
        self._check_teacher(teacher)
        if teacher is not None:
            return cut_layers(teacher, spread_layers(teacher.config.layers, config.layers))
        if self.name == "electra":
            return ReplacedTokenModel(config)
        return PretrainingModel(
            config, token_head=self.head, pair_head="none" if self.pairs == "none" else "pair"
        )

    def objective(
        self,
        vocabulary: MaskingVocabulary | None,
        *,
        pad_id: int = 0,
        seed: int = 0,
        masking: Masking | None = None,
        teacher: PretrainingModel | None = None,
    ) -> Objective:
        """What the recipe trains for.

        Args:
            vocabulary: Of the tokenizer; None only for recipes that do not mask.
            pad_id: Of the tokenizer.
            seed: Of the masks.
            masking: Mask in another way than the recipe does, whole words for instance; its own seed counts.
            teacher: For distillation.

        Raises:
            UsageError: A teacher or a vocabulary is needed, or a teacher makes no sense.
        """
        self._check_teacher(teacher)
        if self.masking is None:
            return CausalLanguageModelling(pad_id=pad_id)
        if vocabulary is None:
            raise UsageError(f"recipe {self.name} masks tokens and needs a vocabulary")
        if masking is None:
            masking = replace(self.masking, seed=seed)
        if teacher is not None:
            return Distillation(teacher, vocabulary, masking, pad_id=pad_id)
        if self.name == "electra":
            return ReplacedTokenDetection(vocabulary, masking, pad_id=pad_id)
        mlm = MaskedLanguageModelling(vocabulary, masking, pad_id=pad_id)
        if self.pairs == "nsp":
            return Joint(mlm, (NextSentencePrediction(pad_id=pad_id),))
        if self.pairs == "sop":
            return Joint(mlm, (SentenceOrderPrediction(pad_id=pad_id),))
        return mlm

    def _check_teacher(self, teacher: PretrainingModel | None) -> None:
        if self.teacher and teacher is None:
            raise UsageError(f"recipe {self.name} needs a teacher", remedy="likewise distill TEACHER CORPUS")
        if teacher is not None and not self.teacher:
            raise UsageError(f"recipe {self.name} has no use for a teacher; only distilbert has")


_COMMON = "No dropout of attention weights, which rules out the fused attention of CPUs."

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        recipe.name: recipe
        for recipe in (
            Recipe(
                name="bert",
                paper="Devlin et al. 2018, BERT: Pre-training of Deep Bidirectional Transformers, 1810.04805",
                idea="Guess 15% hidden tokens, and whether the second text follows the first.",
                differs=f"{_COMMON} Masks repeat after ten draws, as the ten stored copies of each text did.",
                pairs="nsp",
                masking=Masking(duplicates=10),
                options={"segments": 2, "pooler": True, "attention_dropout": 0.0},
            ),
            Recipe(
                name="roberta",
                paper="Liu et al. 2019, RoBERTa: A Robustly Optimized BERT Pretraining Approach, 1907.11692",
                idea="BERT without sentence pairs, with new masks each time, for longer and on more text.",
                differs=f"{_COMMON} Any tokenizer, not only byte-level BPE.",
                options={"segments": 1, "pooler": False, "norm_epsilon": 1e-5, "attention_dropout": 0.0},
            ),
            Recipe(
                name="albert",
                paper="Lan et al. 2019, ALBERT: A Lite BERT for Self-supervised Learning, 1909.11942",
                idea="One layer used over and over, a narrow embedding table, and the order of two texts.",
                differs=(
                    "Adam, not LAMB. At small sizes the embedding table is half as wide as the model "
                    "instead of 128."
                ),
                pairs="sop",
                masking=Masking(unit="span", span_odds=(1.0, 1 / 2, 1 / 3)),
                options={
                    "segments": 2,
                    "pooler": True,
                    "embedding_size": 128,
                    "shared_layers": True,
                    "activation": "gelu_tanh",
                    "dropout": 0.0,
                    "attention_dropout": 0.0,
                },
            ),
            Recipe(
                name="electra",
                paper="Clark et al. 2020, ELECTRA: Pre-training Text Encoders as Discriminators, 2003.10555",
                idea="Tell for every token whether a small generator put it there.",
                differs=(
                    f"{_COMMON} Sampling by inversion instead of Gumbel noise: the same distribution. "
                    "At small sizes the table is half as wide as the model instead of 128."
                ),
                masking=Masking(masked=0.85, random=0.0),
                options={"segments": 2, "pooler": False, "embedding_size": 128, "attention_dropout": 0.0},
            ),
            Recipe(
                name="distilbert",
                paper="Sanh et al. 2019, DistilBERT, a distilled version of BERT, 1910.01108",
                idea="A student with half the layers learns the whole distribution of its teacher's guesses.",
                differs=(
                    "The student keeps what its teacher has, segment embeddings included. Its position "
                    "embeddings are trained too. Rare tokens are not masked more often than others."
                ),
                options={"pooler": False, "attention_dropout": 0.0},
                teacher=True,
            ),
            Recipe(
                name="gpt",
                paper="Radford et al. 2019, Language Models are Unsupervised Multitask Learners (GPT-2)",
                idea="The contrast: see only the left, guess the next token, at every position.",
                differs=f"{_COMMON} Texts are framed by the special tokens of the tokenizer in use.",
                masking=None,
                options={
                    "segments": 0,
                    "pooler": False,
                    "causal": True,
                    "norm": "pre",
                    "norm_epsilon": 1e-5,
                    "activation": "gelu_tanh",
                    "attention_dropout": 0.0,
                },
                head="direct",
            ),
        )
    }
)


def recipe(name: str) -> Recipe:
    """The recipe of this name.

    Raises:
        UsageError: There is none; the message lists those there are.

    Example:
        >>> recipe("electra").pairs
        'none'
    """
    try:
        return RECIPES[name]
    except KeyError:
        raise UsageError(f"unknown recipe {name!r}; expected one of {', '.join(RECIPES)}") from None
