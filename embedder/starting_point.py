"""The model that a pretraining run starts from: a new one, an existing encoder, or a student of a teacher.

Each brings its tokenizer, its objective and the way it is saved, so that `pretrain` treats all alike. Nothing
here reads text or trains.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from likewise.embedder.bert import SelfAttention
from likewise.embedder.foreign_mlm import ForeignMaskedLanguageModelling
from likewise.embedder.hf_export import load_hugging_face, save_hugging_face
from likewise.embedder.hf_families import FAMILIES
from likewise.embedder.layer_cut import cut_layers, spread_layers
from likewise.embedder.masking import Masking
from likewise.embedder.masking_vocabulary import MaskingVocabulary
from likewise.embedder.objectives import Objective
from likewise.embedder.objectives.hidden_states import HiddenStateDistillation
from likewise.embedder.objectives.mlm import MaskedLanguageModelling
from likewise.embedder.presets import preset
from likewise.embedder.pretraining import PretrainingModel, ReplacedTokenModel
from likewise.embedder.recipes import PairKind, recipe
from likewise.embedder.resolve import resolve
from likewise.embedder.segmenters import Segmenter
from likewise.embedder.spec import usable_positions
from likewise.errors import EncoderError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class StartingPoint:
    """What a run trains.

    Attributes:
        model: The model with its heads.
        objective: What it is trained for.
        pairs: Which examples the objective wants.
        positions: Longest sequence, special tokens included.
        identity: What a checkpoint of the run belongs to, as JSON.
        save: Writes a directory that `AutoModel` and `AutoTokenizer` load.
    """

    model: nn.Module
    objective: Objective
    pairs: PairKind
    positions: int
    identity: dict[str, Any]
    save: Callable[[Path], None]


def load_tokenizer(name_or_path: str | Path, *, offline: bool | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer of a model or of a tokenizer folder.

    Raises:
        EncoderError: There is none that can be read.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerBase

    path = Path(name_or_path).expanduser()
    folder = path
    if not (path / "tokenizer.json").is_file():
        folder = checkpoint_of(resolve(name_or_path, offline=offline).directory)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise EncoderError(f"no readable tokenizer in {folder}: {error}") from error
    assert isinstance(tokenizer, PreTrainedTokenizerBase)
    return tokenizer


def masking_vocabulary(
    tokenizer: PreTrainedTokenizerBase, segment: Segmenter | None = None
) -> MaskingVocabulary:
    """What masking has to know of a tokenizer.

    Args:
        tokenizer: The tokenizer.
        segment: Cuts Chinese into words, for whole-word masking.

    Raises:
        DataError: It has no mask token.
    """
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    # Ids that stand for nothing, as after a gap in the numbering, must not be drawn at random.
    tokens = [f"<unused {at}>" if token is None else token for at, token in enumerate(tokens)]
    unused = [token for token in tokens if token.startswith("<unused ")]
    return MaskingVocabulary.from_tokens(
        tokens,
        mask_token=tokenizer.mask_token,
        special_tokens=[*tokenizer.all_special_tokens, *unused],
        segment=segment,
    )


def from_scratch(
    name: str,
    size: str,
    tokenizer: PreTrainedTokenizerBase,
    *,
    length: int,
    seed: int,
    masking: Masking | None = None,
    segment: Segmenter | None = None,
) -> StartingPoint:
    """A new model.

    Args:
        name: Recipe.
        size: Preset.
        tokenizer: Gives the vocabulary.
        length: Longest sequence; the model gets at least as many positions.
        seed: Of the initial weights and the masks.
        masking: Other than the recipe's.
        segment: Cuts Chinese into words, for whole-word masking.
    """
    import torch

    chosen = recipe(name)
    shape = preset(size)
    config = chosen.config(
        shape,
        vocab_size=len(tokenizer),
        max_positions=max(shape.max_positions, length),
        pad_id=tokenizer.pad_token_id or 0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = chosen.model(config)
    objective = chosen.objective(
        None if chosen.masking is None else masking_vocabulary(tokenizer, segment),
        pad_id=config.pad_id,
        seed=seed,
        masking=masking,
    )
    return StartingPoint(
        model,
        objective,
        chosen.pairs,
        config.max_positions,
        {"recipe": name, "model": config.to_dict(), "masking": repr(masking)},
        lambda folder: save_hugging_face(model, folder, tokenizer=tokenizer),
    )


def from_encoder(
    name_or_path: str,
    tokenizer: PreTrainedTokenizerBase,
    *,
    seed: int,
    masking: Masking | None = None,
    segment: Segmenter | None = None,
    offline: bool | None = None,
) -> StartingPoint:
    """An existing encoder, to go on with masked language modelling; a head it lacks is new.

    A Sentence Transformers directory stays one: pooling and prompts are kept.

    Args:
        name_or_path: Any Hugging Face encoder, or "all-MiniLM-L6-v2".
        tokenizer: Its own.
        seed: Of the masks and of a new head.
        masking: Other than 15% of the tokens.
        segment: Cuts Chinese into words, for whole-word masking.
        offline: Never ask the network.

    Raises:
        EncoderNotFound: There is no such model.
        EncoderError: It cannot do masked language modelling.
    """
    directory = resolve(name_or_path, offline=offline).directory
    folder = checkpoint_of(directory)
    mlm = MaskedLanguageModelling(
        masking_vocabulary(tokenizer, segment),
        Masking(seed=seed) if masking is None else masking,
        pad_id=tokenizer.pad_token_id or 0,
    )
    model_type = model_type_of(folder)
    identity = {"init": str(name_or_path), "masking": repr(mlm.masking)}
    if model_type not in FAMILIES:
        return _foreign(directory, tokenizer, mlm, identity)
    model = _load(folder, seed)
    if model.config.causal:
        raise EncoderError(f"expected an encoder that sees both sides, found a causal model in {folder}")

    def save(target: Path) -> None:
        save_hugging_face(model, target, tokenizer=tokenizer, model_type=model_type)
        _copy_pooling(directory, target)

    return StartingPoint(model, mlm, "none", model.config.max_positions, identity, save)


def from_teacher(
    name_or_path: str,
    tokenizer: PreTrainedTokenizerBase,
    *,
    layers: int | None,
    seed: int,
    masking: Masking | None = None,
    segment: Segmenter | None = None,
    offline: bool | None = None,
) -> StartingPoint:
    """A student with some of its teacher's layers.

    A teacher that fills masks is distilled as DistilBERT was. One without a head for that, a sentence encoder
    for instance, hands on its hidden states alone, and a Sentence Transformers directory stays one.

    Args:
        name_or_path: A model of the BERT family.
        tokenizer: The teacher's.
        layers: Layers of the student; None for half of the teacher's.
        seed: Of the masks.
        masking: Other than 15% of the tokens.
        segment: Cuts Chinese into words, for whole-word masking.
        offline: Never ask the network.

    Raises:
        EncoderNotFound: There is no such model.
        EncoderError: It is not of the family.
        UsageError: More layers than the teacher has, or masking for a teacher that fills no masks.
    """
    directory = resolve(name_or_path, offline=offline).directory
    folder = checkpoint_of(directory)
    config = _read_config(folder)
    fills = any("MaskedLM" in name or "PreTraining" in name for name in config.get("architectures") or ())
    if masking is not None and not fills:
        raise UsageError(
            f"{name_or_path} fills no masks, so its student learns from unmasked text, but masking is given",
            remedy=f"likewise pretrain CORPUS --init {name_or_path} teaches it to fill masks",
        )
    teacher = _load(folder, seed)
    keep = layers or max(1, teacher.config.layers // 2)
    student = cut_layers(teacher, spread_layers(teacher.config.layers, keep))
    pad_id = tokenizer.pad_token_id or 0
    objective: Objective = HiddenStateDistillation(teacher, pad_id)
    if fills:
        vocabulary = masking_vocabulary(tokenizer, segment)
        objective = recipe("distilbert").objective(
            vocabulary, pad_id=pad_id, seed=seed, masking=masking, teacher=teacher
        )

    def save(target: Path) -> None:
        kept = student if fills else student.encoder
        save_hugging_face(kept, target, tokenizer=tokenizer, model_type=_type(config))
        _copy_pooling(directory, target)

    return StartingPoint(
        student,
        objective,
        "none",
        teacher.config.max_positions,
        {"teacher": str(name_or_path), "layers": keep, "masking": repr(masking)},
        save,
    )


def checkpoint_of(directory: Path) -> Path:
    """Where the checkpoint of a directory stands: in some sentence encoders in a folder of its own."""
    description = directory / "modules.json"
    if not description.is_file():
        return directory
    try:
        return directory / str(json.loads(description.read_text("utf-8"))[0]["path"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise EncoderError(f"expected a list of modules in {description}: {error}") from error


def model_type_of(folder: Path) -> str:
    """The Hugging Face type of a checkpoint, such as "bert"."""
    return _type(_read_config(folder))


def _type(config: dict[str, Any]) -> str:
    return str(config.get("model_type", ""))


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"no readable config.json in {folder}: {error}") from error
    return config


def _load(folder: Path, seed: int) -> PretrainingModel:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # for a head that is new
        model = load_hugging_face(folder, offline=True)
    for module in model.modules():
        if isinstance(module, SelfAttention):
            module.dropout = 0.0  # rules out the fused attention of CPUs; the saved config keeps its value
    return model


def _foreign(
    directory: Path,
    tokenizer: PreTrainedTokenizerBase,
    mlm: MaskedLanguageModelling,
    identity: dict[str, Any],
) -> StartingPoint:
    from transformers import AutoModelForMaskedLM

    folder = checkpoint_of(directory)
    config = _read_config(folder)
    if config.get("is_encoder_decoder"):
        raise EncoderError(
            f"expected an encoder, found an encoder with a decoder ({_type(config)}) in {folder}"
        )
    try:
        model = AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]  # the next lines list every model there is
        raise EncoderError(
            f"expected an encoder that transformers can mask tokens for, found {_type(config)!r} "
            f"in {folder}: {reason}"
        ) from error

    def save(target: Path) -> None:
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
        _copy_pooling(directory, target)

    positions = usable_positions(model.config.to_dict()) or 512
    return StartingPoint(model, ForeignMaskedLanguageModelling(mlm), "none", positions, identity, save)


def _copy_pooling(source: Path, target: Path) -> None:
    """Keep what makes a checkpoint a Sentence Transformers directory."""
    description = source / "modules.json"
    if not description.is_file():
        return
    modules = json.loads(description.read_text("utf-8"))
    for module in modules[1:]:
        if (source / module["path"]).is_dir():
            shutil.copytree(source / module["path"], target / module["path"], dirs_exist_ok=True)
    settings = (
        source / "config_sentence_transformers.json",
        checkpoint_of(source) / "sentence_bert_config.json",
    )
    for path in settings:
        if path.is_file():
            shutil.copyfile(path, target / path.name)
    modules[0]["path"] = ""  # where the checkpoint is saved, wherever it stood
    (target / "modules.json").write_text(json.dumps(modules, indent=2), "utf-8")


def parameters_of(model: nn.Module) -> dict[str, int]:
    """Parameter counts for the model card: all, and those of the encoder that is kept."""
    counts = {"parameters": sum(p.numel() for p in model.parameters())}
    if isinstance(model, PretrainingModel | ReplacedTokenModel):
        counts["encoder parameters"] = sum(p.numel() for p in model.encoder.parameters())
    return counts
