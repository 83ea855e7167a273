"""Adapt the encoder of an index to its documents, and change the index only if that is shown to help.

Pairs from some of the documents, hard negatives from the index, training that stops early, the best candidate
by questions about other documents, and the verdict by questions about yet others. Nobody has to label
anything, and nothing is claimed that was not measured: without a clear gain, index and encoder stay as they
are.

Everything on the way lies in one folder beside the index's own files, and the index is touched last, so that
a run that is stopped leaves it as it was; the same call goes on with the training.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from likewise.embedder import load_encoder
from likewise.embedder.run_lock import only_run
from likewise.embedder.siamese.pairs import PairData
from likewise.errors import DataError, EncoderError, UsageError
from likewise.index.index import Index
from likewise.index.readers.isolate import ReaderPool
from likewise.index.report import SyncEvent
from likewise.retrieval.adaptation.candidates import Candidate, train_candidates
from likewise.retrieval.adaptation.decision import decide
from likewise.retrieval.adaptation.negatives import as_data, mine_index
from likewise.retrieval.adaptation.records import KINDS, Adaptation, AdaptSettings
from likewise.retrieval.adaptation.split import Split, split_documents
from likewise.retrieval.adaptation.trial import DENSE, Progress, Runs, gain, mean, trial
from likewise.retrieval.pairs.collect import make_pairs
from likewise.retrieval.pairs.documents import FileLinks, IndexDocuments
from likewise.retrieval.pairs.records import TextPair

if TYPE_CHECKING:
    from likewise.embedder.events import Listener
    from likewise.embedder.protocol import TextEncoder

WORK_FOLDER = "adaptation"
"""Folder in the index folder for what a run makes on its way; gone when the run is done."""
RUN_FOLDER = "adaptation-run"
"""Folder in the index folder for the lock that keeps a second run out; gone when the run is done."""
ENCODER_PREFIX = "encoder-"
"""What the names of encoders in an index folder begin with."""
BASE = "the encoder of the index"

_LEAST_PAIRS = 32
_MOST_HELD_OUT_PAIRS = 200


def adapt(
    index: Index,
    settings: AdaptSettings | None = None,
    *,
    output: Path | None = None,
    dry_run: bool = False,
    progress: Progress = lambda phase, done, total: None,
    listeners: Sequence[Listener] = (),
) -> Adaptation:
    """Adapt the encoder of an index to its documents.

    Args:
        index: With documents. It is changed only at the very end, and only if the verdict is for it.
        settings: How; the defaults if None.
        output: Directory for the new encoder; None for one in the index folder. It must not exist.
        dry_run: Leave the index alone whatever the verdict. A good encoder is kept all the same, and with
            `output` so is one that the verdict is against.
        progress: Told how far it is.
        listeners: Told how the training goes.

    Returns:
        How it ended. After an interruption of the training the same call goes on with it.

    Raises:
        IndexNotFound: There is no index.
        DataError: Too few documents, or nothing to learn from or to ask.
        EncoderError: The encoder of the index cannot be trained.
        UsageError: `output` is taken.
        TrainingError: Another process is adapting this index.
        SyncInterrupted: Ctrl-C while the index was embedded anew: the old vectors answer still.
    """
    settings = settings or AdaptSettings()
    _check_trainable(index.encoder)
    _check_output(output)
    with only_run(index.folder / RUN_FOLDER):
        return _adapt(index, settings, output, dry_run, progress, listeners)


def _adapt(
    index: Index,
    settings: AdaptSettings,
    output: Path | None,
    dry_run: bool,
    progress: Progress,
    listeners: Sequence[Listener],
) -> Adaptation:
    base = index.encoder
    with index.view() as view, ReaderPool() as pool:
        documents = IndexDocuments(view, links=FileLinks(pool, index.base))
        split = split_documents(list(documents), held_out=settings.held_out, seed=settings.seed)
        found = make_pairs(
            documents,
            kinds=settings.kinds,
            seed=settings.seed,
            progress=lambda done, total: progress("looking for pairs", done, total),
        )
        learned = _drawn(found.of(split.learned), settings.pairs, settings.seed)
        held_out = _drawn(found.of(split.choosing), _MOST_HELD_OUT_PAIRS, settings.seed)
        _check_enough(learned, held_out)
        mined, rest = mine_index(
            view,
            base,
            learned,
            settings.mining,
            within=split.learned,
            progress=lambda done, total: progress("mining", done, total),
        )
    data = [pairs for pairs in (mined, rest) if pairs is not None]
    work = _work_folder(index.folder / WORK_FOLDER, base.fingerprint, data, settings)
    training, candidates = train_candidates(
        index.encoder_name or None,
        data,
        as_data(held_out, "held-out"),
        work,
        settings.recipe,
        listeners=listeners,
    )
    facts = Adaptation(
        status="left alone",
        reason=f"training brought nothing: {training.verdict.sentence()}",
        pairs=dict(Counter(pair.kind for pair in learned)),
        mined=0 if mined is None else len(mined),
        steps=training.training.step,
    )
    if training.training.status == "interrupted":
        return replace(facts, status="interrupted", reason="stopped in the training")
    if candidates:
        facts = _tried(index, facts, candidates, split, settings, progress)
    if facts.decision is None or not (facts.decision.adopt or (dry_run and output is not None)):
        shutil.rmtree(work.parent, ignore_errors=True)
        return facts
    chosen = next(candidate for candidate in candidates if candidate.name == facts.chosen)
    target = _keep(chosen, output or index.folder, facts, named=output is not None)
    if dry_run:
        shutil.rmtree(work.parent, ignore_errors=True)
        return replace(facts, encoder=target)
    reembedded = _change(index, target, progress)
    shutil.rmtree(work.parent, ignore_errors=True)
    return replace(facts, status="adapted", encoder=target, reembedded=reembedded)


# -- what is learned from ----------------------------------------------------------------------------------


def _check_trainable(encoder: TextEncoder) -> None:
    from likewise.embedder.encoder import Encoder

    if not isinstance(encoder, Encoder):
        raise EncoderError(
            f"expected an encoder that can be trained, found {encoder.name}, which has no weights",
            remedy="likewise index --encoder all-MiniLM-L6-v2-zh --reembed",
        )


def _check_output(output: Path | None) -> None:
    if output is not None and output.exists():
        raise UsageError(f"expected a new folder for the encoder, found {output}", remedy="name another one")


def _check_enough(learned: Sequence[TextPair], held_out: Sequence[TextPair]) -> None:
    if len(learned) < _LEAST_PAIRS or len(held_out) < 2:
        raise DataError(
            f"expected at least {_LEAST_PAIRS} pairs to learn from and 2 to stop by, found {len(learned)} and"
            f" {len(held_out)}",
            remedy="add documents with titles, headings or running text; likewise pairs FOLDER counts pairs",
        )


def _drawn(pairs: Sequence[TextPair], most: int, seed: int) -> list[TextPair]:
    """At most so many pairs of each kind."""
    kept: list[TextPair] = []
    for kind in KINDS:
        own = [pair for pair in pairs if pair.kind == kind]
        if len(own) > most:
            chosen = sorted(Random(f"{seed} {kind}").sample(range(len(own)), most))
            own = [own[number] for number in chosen]
        kept += own
    return kept


def _work_folder(parent: Path, fingerprint: str, data: Sequence[PairData], settings: AdaptSettings) -> Path:
    """The folder of this very run; what other runs left is removed."""
    told = json.dumps(
        [fingerprint, [{**pairs.columns} for pairs in data], asdict(settings.recipe)], ensure_ascii=True
    )
    work = parent / sha256(told.encode()).hexdigest()[:16]
    if parent.is_dir():
        for other in parent.iterdir():
            if other != work:
                shutil.rmtree(other, ignore_errors=True)
    return work


# -- trial and verdict -------------------------------------------------------------------------------------


def _tried(
    index: Index,
    facts: Adaptation,
    candidates: Sequence[Candidate],
    split: Split,
    settings: AdaptSettings,
    progress: Progress,
) -> Adaptation:
    """Let the first questions choose a candidate, and the others judge it."""
    with trial(
        index,
        choosing=split.choosing,
        verdict=split.verdict,
        questions=settings.questions,
        most_passages=settings.most_passages,
        seed=settings.seed,
        progress=progress,
    ) as place:
        best = place.base(place.choosing, progress)[DENSE]
        means = {BASE: mean(best)}
        chosen: Candidate | None = None
        judged: Runs = {}
        for candidate in candidates:
            with place.candidate(load_encoder(str(candidate.folder)), progress) as ask:
                reached = ask(place.choosing)[DENSE]
                means[candidate.name] = mean(reached)
                # The nearer to the base the safer: another candidate has to be better beyond chance.
                least = mean(reached) - mean(best) if chosen is None else gain(best, reached).low
                if least > 0:
                    best, chosen = reached, candidate
                    judged = ask(place.verdict)
        facts = replace(facts, choosing=means)
        if chosen is None:
            return replace(
                facts,
                reason="no candidate answers the questions that choose better than the encoder there is",
            )
        decision = decide(place.base(place.verdict, progress), judged, seed=settings.seed)
    return replace(facts, chosen=chosen.name, decision=decision, reason=decision.reason)


# -- changing the index ------------------------------------------------------------------------------------


def _keep(chosen: Candidate, place: Path, facts: Adaptation, *, named: bool) -> Path:
    """Move the chosen encoder to where it stays, in one step."""
    (chosen.folder / "adaptation.json").write_text(json.dumps(facts.to_json(), indent=1), "utf-8")
    shutil.rmtree(chosen.folder / "training", ignore_errors=True)
    fingerprint = load_encoder(str(chosen.folder)).fingerprint
    target = place if named else place / f"{ENCODER_PREFIX}{fingerprint[:12]}"
    if target.exists():  # of an equal run that was stopped while the index was embedded
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(chosen.folder, draft)
    draft.rename(target)
    return target


def _change(index: Index, encoder: Path, progress: Progress) -> int:
    """Embed the index with the new encoder; the old vectors answer until the last passage is done."""

    def report(event: SyncEvent) -> None:
        progress("embedding the index", event.done, event.total)

    changed = index.sync([], encoder=str(encoder), reembed=True, progress=report)
    for other in index.folder.glob(f"{ENCODER_PREFIX}*"):
        if other != encoder:
            shutil.rmtree(other, ignore_errors=True)
    return changed.reembedded
