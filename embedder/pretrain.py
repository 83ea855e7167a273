"""From text to an encoder: corpus, tokenizer, model, objective and loop put together.

The result is a directory that `AutoModel` and the encoder of this project load. Beside it, in `training/`,
stands what the run needs to go on and what it logged. Every part stands in a module of its own; this one only
connects them.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.embedder.batches import Batches, Stage
from likewise.embedder.compilation import compile_feed_forward
from likewise.embedder.corpus import CorpusCounts, TokenCorpus
from likewise.embedder.corpus_build import SourceText, open_or_build_corpus
from likewise.embedder.devices import torch_device
from likewise.embedder.distributed import World
from likewise.embedder.events import Listener, Prepared
from likewise.embedder.examples import Example
from likewise.embedder.logs import CsvLog, JsonLog, TensorBoardLog
from likewise.embedder.masking import Masking
from likewise.embedder.mlm_evaluation import held_out_metrics
from likewise.embedder.packing import CorpusBatches, Order
from likewise.embedder.pair_batches import PairBatches
from likewise.embedder.pretrain_report import report
from likewise.embedder.recipes import recipe
from likewise.embedder.segmenters import SegmenterName, segmenter
from likewise.embedder.sequences import Frame
from likewise.embedder.starting_point import (
    StartingPoint,
    from_encoder,
    from_scratch,
    from_teacher,
    load_tokenizer,
    parameters_of,
)
from likewise.embedder.training import TrainingResult, train
from likewise.embedder.training_settings import TrainingSettings
from likewise.embedder.vocabulary import VocabularySettings, train_vocabulary
from likewise.errors import DataError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, kw_only=True)
class PretrainSettings:
    """What to pretrain, and how.

    Attributes:
        training: Budget, optimiser and the rest.
        recipe: Of a new model: bert, roberta, albert, electra or gpt.
        size: Preset of a new model, such as "mini".
        init: Continue this encoder with masked language modelling instead, with its own tokenizer.
        teacher: Distil this model instead, with its own tokenizer.
        layers: Layers of the student; None for half of the teacher's.
        tokenizer: Folder or model whose tokenizer a new model takes; None trains one.
        vocabulary: How to train one.
        masking: Other than the recipe's.
        segmenter: Cuts Chinese into words: for masking whole words, and for a vocabulary that is trained with
            Chinese joined (bpe and unigram).
        length: Longest sequence, special tokens included.
        shorter: Stages before: (share of the run at which it ends, length of its sequences).
        tokens_per_batch: Tokens in a micro-batch.
        held_out: Share of the documents that are held out for evaluation.
        evaluation_batches: Most held-out batches in an evaluation.
        order: Of sequences in batches, see `packing.plan_epoch`.
        device: Such as "cpu" or "cuda"; None for the fastest.
        compile: Compile the feed-forward nets, on a GPU; pays off in runs of many minutes.
        offline: Never ask the network for a model.
        tensorboard: Log for TensorBoard too.
    """

    training: TrainingSettings
    recipe: str = "roberta"
    size: str = "mini"
    init: str | None = None
    teacher: str | None = None
    layers: int | None = None
    tokenizer: str | None = None
    vocabulary: VocabularySettings = field(
        default_factory=lambda: VocabularySettings(size=8_000, shortfall="accept")
    )
    masking: Masking | None = None
    segmenter: SegmenterName | None = None
    length: int = 128
    shorter: tuple[tuple[float, int], ...] = ()
    tokens_per_batch: int = 4_096
    held_out: float = 0.02
    evaluation_batches: int = 50
    order: Order = "bucketed"
    device: str | None = "auto"
    compile: bool = False
    offline: bool | None = None
    tensorboard: bool = False

    def __post_init__(self) -> None:
        if self.init is not None and self.teacher is not None:
            raise UsageError("expected a model to continue or a teacher, found both")
        if self.tokenizer is not None and (self.init or self.teacher):
            raise UsageError(
                "a continued or distilled model keeps its own tokenizer, but another one is given"
            )
        if self.init is None and self.teacher is None and recipe(self.recipe).teacher:
            raise UsageError(
                f"recipe {self.recipe} needs a teacher", remedy="likewise distill TEACHER CORPUS"
            )


@dataclass(frozen=True)
class PretrainResult:
    """What came of it.

    Attributes:
        folder: The model.
        training: How the run ended.
        corpus: What it was trained on.
        parameters: Parameter counts.
    """

    folder: Path
    training: TrainingResult
    corpus: CorpusCounts
    parameters: Mapping[str, int]


def pretrain(
    documents: Callable[[], Iterable[SourceText]],
    folder: Path,
    settings: PretrainSettings,
    *,
    source: str,
    listeners: Sequence[Listener] = (),
    world: World | None = None,
) -> PretrainResult:
    """Pretrain an encoder, or go on with a run that was interrupted in the same folder.

    Args:
        documents: Gives the documents, called again for each pass that is needed (tokenizer, corpus).
        folder: Where the model goes.
        settings: What and how.
        source: Whatever identifies the documents; the corpus on disk is reused as long as it is the same.
        listeners: Called with the events of the run.
        world: The processes that train together; None is this one alone.

    Returns:
        The folder and how the run went. After an interruption the folder holds no model yet, only the
        checkpoint.

    Raises:
        DataError: Too little text, or a tokenizer without a mask token.
        EncoderError: The model to start from cannot be read or used.
        UsageError: Settings that do not fit together, such as sequences longer than the model has positions.
        TrainingError: The run diverged or could not be saved.
    """
    world = world or World()
    work = folder / "training"
    tokenizer = _in_turn(world, lambda: _tokenizer(documents, work, settings, source))
    start = _start(settings, tokenizer)
    if settings.length > start.positions:
        raise UsageError(
            f"expected sequences of at most {start.positions} tokens, the positions that the model has, "
            f"found a length of {settings.length}",
            remedy=f"--length {start.positions}",
        )
    corpus = _in_turn(
        world,
        lambda: open_or_build_corpus(
            documents, tokenizer, work / "corpus", held_out=settings.held_out, source=source
        ),
    )
    parameters = parameters_of(start.model)
    if world.leads:
        counts = corpus.counts
        ready = Prepared(
            counts.documents, counts.held_out, counts.tokens, len(tokenizer), parameters["parameters"]
        )
        for listener in listeners:
            listener(ready)
    start.model.to(torch_device(settings.device))
    if settings.compile:
        compile_feed_forward(start.model)
    logs: list[Listener] = [CsvLog(work / "train.csv"), JsonLog(work / "log.jsonl")]
    with contextlib.ExitStack() as opened:
        if settings.tensorboard and world.leads:
            curves = TensorBoardLog(work / "tensorboard")
            opened.callback(curves.close)
            logs.append(curves)
        result = train(
            start.model,
            start.objective,
            _stages(settings, start, corpus, tokenizer),
            settings.training,
            folder=work / "checkpoints",
            evaluate=_evaluation(settings, start, corpus, tokenizer),
            listeners=[*logs, *listeners],
            identity=start.identity | ({"segmenter": settings.segmenter} if settings.segmenter else {}),
            world=world,
        )
    done = PretrainResult(folder, result, corpus.counts, parameters)
    if result.status != "interrupted" and world.leads:
        start.model.cpu()
        start.save(folder)
        report(done, settings, work)
    return done


class _Texts:
    """The text of the documents, as often as it is asked for."""

    def __init__(self, documents: Callable[[], Iterable[SourceText]]) -> None:
        self._documents = documents

    def __iter__(self) -> Iterator[str]:
        return (document.text for document in self._documents())


def _in_turn(world: World, make: Callable[[], Any]) -> Any:
    """Let the first process make something on disk; the others then find it there."""
    made = make() if world.leads else None
    world.wait()
    return made if world.leads else make()


def _tokenizer(
    documents: Callable[[], Iterable[SourceText]], work: Path, settings: PretrainSettings, source: str
) -> PreTrainedTokenizerBase:
    given = settings.init or settings.teacher or settings.tokenizer
    if given is not None:
        return load_tokenizer(given, offline=settings.offline)
    folder = work / "tokenizer"
    vocabulary = settings.vocabulary
    words = vocabulary.chinese == "join" and vocabulary.algorithm != "wordpiece"
    segment = segmenter(settings.segmenter) if settings.segmenter and words else None
    record = {"source": source, "segmenter": segment and settings.segmenter, **asdict(settings.vocabulary)}
    origin = folder / "origin.json"
    wanted = json.dumps(record, default=list, sort_keys=True)
    if origin.is_file() and origin.read_text("utf-8") == wanted:
        return load_tokenizer(folder, offline=True)
    tokenizer = train_vocabulary(_Texts(documents), settings.vocabulary, segment=segment)
    shutil.rmtree(folder, ignore_errors=True)
    tokenizer.save_pretrained(folder)
    origin.write_text(wanted, "utf-8")
    return load_tokenizer(folder, offline=True)


def _start(settings: PretrainSettings, tokenizer: PreTrainedTokenizerBase) -> StartingPoint:
    seed, masking = settings.training.seed, settings.masking
    segment = segmenter(settings.segmenter) if settings.segmenter else None
    if settings.teacher is not None:
        return from_teacher(
            settings.teacher,
            tokenizer,
            layers=settings.layers,
            seed=seed,
            masking=masking,
            segment=segment,
            offline=settings.offline,
        )
    if settings.init is not None:
        return from_encoder(
            settings.init, tokenizer, seed=seed, masking=masking, segment=segment, offline=settings.offline
        )
    return from_scratch(
        settings.recipe,
        settings.size,
        tokenizer,
        length=settings.length,
        seed=seed,
        masking=masking,
        segment=segment,
    )


def _stages(
    settings: PretrainSettings, start: StartingPoint, corpus: TokenCorpus, tokenizer: PreTrainedTokenizerBase
) -> list[Stage[Example]]:
    plan = (*settings.shorter, (1.0, settings.length))
    return [
        Stage(until, _batches(settings, start, corpus, tokenizer, length=length, held_out=False))
        for until, length in plan
    ]


def _batches(
    settings: PretrainSettings,
    start: StartingPoint,
    corpus: TokenCorpus,
    tokenizer: PreTrainedTokenizerBase,
    *,
    length: int,
    held_out: bool,
) -> Batches[Example]:
    tokens = max(settings.tokens_per_batch, length)
    seed = settings.training.seed
    if start.pairs == "none":
        return CorpusBatches(
            corpus,
            Frame.of(tokenizer),
            length=length,
            tokens_per_batch=tokens,
            held_out=held_out,
            seed=seed,
            order=settings.order,
        )
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise DataError("sentence pairs need a tokenizer with the tokens [CLS] and [SEP]")
    return PairBatches(
        corpus,
        start.pairs,
        cls_id=tokenizer.cls_token_id,
        sep_id=tokenizer.sep_token_id,
        length=length,
        tokens_per_batch=tokens,
        held_out=held_out,
        seed=seed,
        order=settings.order,
    )


def _evaluation(
    settings: PretrainSettings, start: StartingPoint, corpus: TokenCorpus, tokenizer: PreTrainedTokenizerBase
) -> Callable[[Any], Mapping[str, float]] | None:
    if not corpus.counts.held_out:
        return None
    batches = _batches(settings, start, corpus, tokenizer, length=settings.length, held_out=True)
    limit = settings.evaluation_batches
    return lambda model: held_out_metrics(model, start.objective, batches, limit=limit)
