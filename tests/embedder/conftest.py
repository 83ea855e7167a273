"""Tiny seeded models of several architectures, saved as Sentence Transformers directories."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SENTENCES = [
    "How do I rotate a signing key?",
    "The quick brown fox jumps over the lazy dog.",
    "Interest rates rose again, and markets fell.",
    "如何輪換簽署金鑰？",
    "敏捷的棕色狐狸跳过懒狗。",
    "emoji 🗝 and naïve café",
    "مرحبا بالعالم",
]
TEXTS = [*SENTENCES, "", "a", "key " * 90, "\x00 nul", " ".join(SENTENCES)]
ARCHITECTURES = (
    "bert",
    "roberta",
    "distilbert",
    "albert",
    "mpnet",
    "xlm-roberta",
    "modernbert",
    "llama",
    "gpt2",
)
_SIZES = {"vocab_size": 300, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
_LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def _config(architecture: str) -> Any:
    import transformers as t

    match architecture:
        case "bert":
            return t.BertConfig(**_SIZES, **_LAYERS, max_position_embeddings=64)
        case "roberta":
            return t.RobertaConfig(**_SIZES, **_LAYERS, max_position_embeddings=66)
        case "xlm-roberta":
            return t.XLMRobertaConfig(**_SIZES, **_LAYERS, max_position_embeddings=66)
        case "mpnet":
            return t.MPNetConfig(**_SIZES, **_LAYERS, max_position_embeddings=66)
        case "albert":
            return t.AlbertConfig(**_SIZES, **_LAYERS, embedding_size=16, max_position_embeddings=64)
        case "distilbert":
            return t.DistilBertConfig(
                **_SIZES, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64
            )
        case "modernbert":
            # Local attention narrower than the texts, so that its sliding window is really used.
            return t.ModernBertConfig(
                **_SIZES,
                **_LAYERS,
                cls_token_id=0,
                sep_token_id=2,
                max_position_embeddings=64,
                local_attention=8,
                global_attn_every_n_layers=2,
            )
        case "llama":
            return t.LlamaConfig(**_SIZES, **_LAYERS, num_key_value_heads=2, max_position_embeddings=64)
        case "gpt2":
            return t.GPT2Config(**_SIZES, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    raise ValueError(architecture)


def _tokenizer(architecture: str, padding_side: str) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    decoder = architecture in ("llama", "gpt2")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>" if decoder else "<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        cls_token="<s>",
        sep_token="</s>",
        model_max_length=64,
        padding_side=padding_side,
    )


@pytest.fixture(scope="session")
def plain_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a plain checkpoint of an architecture with random weights, once per session."""
    made: dict[tuple[str, str], Path] = {}

    def make(architecture: str, padding_side: str = "right") -> Path:
        import torch
        from transformers import AutoModel

        key = (architecture, padding_side)
        if key not in made:
            folder = tmp_path_factory.mktemp(architecture)
            torch.manual_seed(7)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = AutoModel.from_config(_config(architecture)).eval()
                with torch.no_grad():
                    # As initialised, all vectors would be nearly alike and hide any mistake.
                    for parameter in model.parameters():
                        parameter.add_(torch.randn_like(parameter) * 0.15)
                model.save_pretrained(folder)
                _tokenizer(architecture, padding_side).save_pretrained(folder)
            made[key] = folder
        return made[key]

    return make


@pytest.fixture(scope="session")
def sentence_model(
    tmp_path_factory: pytest.TempPathFactory, plain_checkpoint: Callable[..., Path]
) -> Callable[..., Path]:
    """Makes a Sentence Transformers directory: a tiny transformer, pooling, then `more` modules."""

    def make(
        architecture: str, pooling: Any = "mean", *, more: Any = (), prompts: Any = None, **options: Any
    ) -> Path:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

        padding_side = options.pop("padding_side", "right")
        folder = tmp_path_factory.mktemp(f"st-{architecture}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            transformer = Transformer(str(plain_checkpoint(architecture, padding_side)))
            modules = [transformer, Pooling(32, pooling, **options), *more]
            model = SentenceTransformer(modules=modules, device="cpu", prompts=prompts)
            model.save(str(folder), create_model_card=False)
        return folder

    return make
