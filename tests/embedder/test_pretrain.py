"""Pretraining end to end: recipes, what a run leaves behind, continuing, and what is refused."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    ModernBertConfig,
    ModernBertForMaskedLM,
    MPNetConfig,
    MPNetForMaskedLM,
    T5Config,
    T5EncoderModel,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

from likewise.embedder.corpus_build import SourceText
from likewise.embedder.events import Evaluated, Progress
from likewise.embedder.masking import Masking
from likewise.embedder.objectives import add_counts
from likewise.embedder.pretrain import PretrainSettings, pretrain
from likewise.embedder.starting_point import from_scratch, from_teacher
from likewise.embedder.training_settings import TrainingSettings
from likewise.embedder.vocabulary import VocabularySettings, train_vocabulary
from likewise.errors import CheckpointError, DataError, EncoderError, TrainingError, UsageError

RECIPES = ["bert", "roberta", "albert", "electra", "gpt"]


# Ways to distil, and the encoder of the fixture that teaches.
TEACHERS = {"distilbert": "bert", "hidden states": "body"}

WORDS = [
    "fox",
    "dog",
    "key",
    "vector",
    "text",
    "runs",
    "turns",
    "sees",
    "every",
    "old",
    "句",
    "文",
    "中",
    "金",
    "鑰",
    "输",
]


def documents():
    rng = np.random.default_rng(5)
    for _ in range(24):
        sentences = [" ".join(rng.choice(WORDS, rng.integers(4, 10))) + "." for _ in range(8)]
        yield SourceText(" ".join(sentences))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    train_vocabulary((d.text for d in documents()), VocabularySettings(size=50)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def encoders(tokenizer, tmp_path_factory):
    """A BERT that fills masks, one without a head, and models that bert.py does not write out."""
    torch.manual_seed(0)
    loaded = AutoTokenizer.from_pretrained(tokenizer)
    shape = {
        "vocab_size": len(loaded), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": 40, "pad_token_id": loaded.pad_token_id,
    }  # fmt: skip
    special = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": None, "eos_token_id": None}
    models = {
        "bert": BertForMaskedLM(BertConfig(**shape)),
        "body": BertModel(BertConfig(**shape)),
        "modern": ModernBertForMaskedLM(ModernBertConfig(**shape | special)),
        # Their first positions are 1 (pad_id + 1) and 2.
        "xlm-roberta": XLMRobertaForMaskedLM(XLMRobertaConfig(**shape)),
        "mpnet": MPNetForMaskedLM(MPNetConfig(**shape)),
        "bart": BartForConditionalGeneration(
            BartConfig(
                vocab_size=len(loaded), d_model=16, encoder_layers=1, decoder_layers=1,
                encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
            )
        ),
        "t5": T5EncoderModel(
            T5Config(vocab_size=len(loaded), d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
        ),
        "gpt2": GPT2LMHeadModel(
            GPT2Config(vocab_size=len(loaded), n_embd=16, n_layer=1, n_head=2, n_positions=40)
        ),
    }  # fmt: skip
    folders = {}
    for name, model in models.items():
        folders[name] = tmp_path_factory.mktemp("encoders") / name
        model.save_pretrained(folders[name])
        loaded.save_pretrained(folders[name])
    return folders


def settings(tokenizer=None, *, steps=6, training=None, **changes):
    quick = {"steps": steps, "learning_rate": 1e-3, "log_every": 1, "precision": "float32"} | (training or {})
    return PretrainSettings(
        **{
            "training": TrainingSettings(**quick), "size": "tiny", "length": 32, "tokens_per_batch": 160,
            "held_out": 0.15, "device": "cpu", "offline": True,
            "tokenizer": None if tokenizer is None else str(tokenizer),
        }
        | changes
    )  # fmt: skip


def run(folder, chosen, **options):
    return pretrain(documents, folder, chosen, source="test", **options)


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


class StopAt:
    def __init__(self, step):
        self.step = step

    def __call__(self, event):
        if isinstance(event, Progress) and event.step == self.step:
            signal.raise_signal(signal.SIGINT)


class TestRecipes:
    @pytest.mark.parametrize("name", [*RECIPES, *TEACHERS])
    def test_an_interrupted_run_ends_bit_equal(self, name, tokenizer, encoders, tmp_path):
        if name in TEACHERS:
            chosen = settings(teacher=str(encoders[TEACHERS[name]]), layers=1)
        else:
            chosen = settings(tokenizer, recipe=name)
        whole = run(tmp_path / "whole", chosen)
        assert whole.training.status == "finished" and whole.training.step == 6
        first = run(tmp_path / "stopped", chosen, listeners=[StopAt(3)])
        assert first.training.status == "interrupted"
        assert not (tmp_path / "stopped" / "config.json").exists()
        run(tmp_path / "stopped", chosen)
        assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")
        model = AutoModel.from_pretrained(tmp_path / "whole")
        loaded = AutoTokenizer.from_pretrained(tmp_path / "whole")
        assert model(**loaded("fox 文", return_tensors="pt")).last_hidden_state.shape[0] == 1

    @pytest.mark.parametrize("name", [*RECIPES, *TEACHERS])
    def test_accumulated_gradients_are_those_of_the_big_batch(self, name, tokenizer, encoders):
        loaded = AutoTokenizer.from_pretrained(tokenizer)
        if name in TEACHERS:
            start = from_teacher(str(encoders[TEACHERS[name]]), loaded, layers=1, seed=0)
            start.objective.teacher.double()
        else:
            start = from_scratch(name, "tiny", loaded, length=32, seed=0)
        model = start.model.eval().double()  # no dropout
        examples = _examples(start, loaded)
        parts = [examples[:1], examples[1:4], examples[4:9], examples[9:]]
        small = [start.objective.prepare(part, draw=0) for part in parts]
        totals = add_counts(start.objective.counts(batch) for batch in small)
        for batch in small:
            start.objective.loss(model, batch).total(totals).backward()
        found = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        model.zero_grad()
        big = start.objective.prepare(examples, draw=0)
        assert start.objective.counts(big) == totals
        start.objective.loss(model, big).total().backward()
        for n, p in model.named_parameters():
            if p.grad is not None:
                assert torch.allclose(found[n], p.grad, atol=1e-6), n

    def test_learning_lowers_the_held_out_loss(self, tokenizer, tmp_path):
        events = []
        run(
            tmp_path,
            settings(tokenizer, steps=40, training={"evaluate_every": 10}),
            listeners=[events.append],
        )
        losses = [event.metrics["loss"] for event in events if isinstance(event, Evaluated)]
        assert losses[-1] < losses[0] - 0.1

    def test_short_sequences_first(self, tokenizer, tmp_path):
        result = run(tmp_path, settings(tokenizer, shorter=((0.5, 8),)))
        assert result.training.status == "finished"


def _examples(start, tokenizer):
    from likewise.embedder.sentence_pairs import sentence_order_pairs
    from likewise.embedder.sequences import Frame

    rng = np.random.default_rng(0)
    texts = [[rng.integers(6, len(tokenizer), 5) for _ in range(4)] for _ in range(14)]
    if start.pairs == "none":
        frame = Frame.of(tokenizer)
        return [frame.example(np.concatenate(t)[: 4 + at], key=at) for at, t in enumerate(texts)]
    pairs = [sentence_order_pairs(text, rng, max_tokens=32, short_share=0)[0] for text in texts]
    return [pair.example(cls_id=2, sep_id=3, key=at) for at, pair in enumerate(pairs)]


class TestOutput:
    def test_logs_card_and_curve(self, tokenizer, tmp_path):
        run(tmp_path, settings(tokenizer, tensorboard=True, training={"evaluate_every": 3}))
        rows = (tmp_path / "training" / "train.csv").read_text().splitlines()
        assert rows[0].startswith("step,loss,perplexity,masked_accuracy") and len(rows) == 7
        log = [json.loads(line) for line in (tmp_path / "training" / "log.jsonl").read_text().splitlines()]
        assert [line["step"] for line in log if line["event"] == "evaluation"] == [3, 6]
        assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
        assert list((tmp_path / "training" / "tensorboard").glob("events.*"))
        card = (tmp_path / "README.md").read_text("utf-8")
        for fact in (
            "1907.11692",
            "| documents | 24 |",
            "| learning rate | 0.001 |",
            "masked_accuracy",
            "threads",
        ):
            assert fact in card

    def test_logs_hold_every_step_once_after_a_crash(self, tokenizer, tmp_path):
        def crash(event):
            if isinstance(event, Progress) and event.step == 5:
                raise RuntimeError("power cut")

        chosen = settings(tokenizer, training={"save_every": 3})
        with pytest.raises(RuntimeError, match="power cut"):
            run(tmp_path, chosen, listeners=[crash])
        run(tmp_path, chosen)
        rows = (tmp_path / "training" / "train.csv").read_text().splitlines()
        assert [row.split(",")[0] for row in rows[1:]] == ["1", "2", "3", "4", "5", "6"]
        log = [json.loads(line) for line in (tmp_path / "training" / "log.jsonl").read_text().splitlines()]
        assert [line["step"] for line in log if line["event"] == "progress"] == [1, 2, 3, 4, 5, 6]

    def test_a_tokenizer_is_trained_once_and_kept(self, tmp_path):
        calls = []

        def counted():
            calls.append(1)
            return documents()

        chosen = settings(vocabulary=VocabularySettings(size=50), training={"save_every": 2})
        for _ in range(2):
            pretrain(counted, tmp_path, chosen, source="test")
        assert len(calls) == 3  # twice for the tokenizer, once for the corpus
        assert len(AutoTokenizer.from_pretrained(tmp_path)) == 50


class TestContinue:
    @pytest.mark.parametrize("name", ["bert", "body", "modern", "xlm-roberta", "mpnet"])
    def test_any_encoder_goes_on_with_its_own_tokenizer(self, encoders, name, tmp_path):
        before = AutoModel.from_pretrained(encoders[name]).state_dict()
        result = run(tmp_path, settings(init=str(encoders[name])))
        assert result.training.status == "finished"
        after = AutoModel.from_pretrained(tmp_path)
        changed = [n for n, w in after.state_dict().items() if n in before and not torch.equal(w, before[n])]
        assert len(changed) > 10
        assert type(after) is type(AutoModel.from_pretrained(encoders[name]))
        ours, theirs = (AutoTokenizer.from_pretrained(folder) for folder in (tmp_path, encoders[name]))
        assert ours.get_vocab() == theirs.get_vocab()

    def test_pooling_of_a_sentence_transformers_folder_is_kept(self, encoders, tmp_path):
        source = tmp_path / "source"
        source.mkdir()
        for file in encoders["body"].iterdir():
            (source / file.name).write_bytes(file.read_bytes())
        (source / "1_Pooling").mkdir()
        (source / "1_Pooling" / "config.json").write_text('{"word_embedding_dimension": 16}')
        modules = [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]
        (source / "modules.json").write_text(json.dumps(modules))
        run(tmp_path / "model", settings(init=str(source), steps=2))
        assert json.loads((tmp_path / "model" / "modules.json").read_text()) == modules
        assert (tmp_path / "model" / "1_Pooling" / "config.json").is_file()

    def test_a_student_of_a_teacher(self, encoders, tmp_path):
        result = run(tmp_path, settings(teacher=str(encoders["bert"]), layers=1))
        assert {"soft", "mlm", "cosine"} <= set(result.training.metrics)
        assert AutoModel.from_pretrained(tmp_path).config.num_hidden_layers == 1

    def test_a_teacher_without_a_head_hands_on_its_hidden_states(self, encoders, tmp_path):
        def away():
            """Mean distance of the student's hidden states to the teacher's, on a text of the corpus."""
            loaded = AutoTokenizer.from_pretrained(encoders["body"])
            inputs = loaded("old fox sees every key. 句 文", return_tensors="pt")
            with torch.no_grad():
                one, two = (
                    AutoModel.from_pretrained(f)(**inputs)[0][0] for f in (encoders["body"], tmp_path)
                )
            return float(1 - torch.cosine_similarity(one, two, dim=-1).mean())

        chosen = {"teacher": str(encoders["body"]), "layers": 1}
        result = run(tmp_path, settings(**chosen, steps=40, training={"evaluate_every": 20}))
        assert set(result.training.metrics) == {"loss"}
        model = AutoModel.from_pretrained(tmp_path)
        assert type(model) is BertModel and model.config.num_hidden_layers == 1
        assert away() == pytest.approx(result.training.metrics["loss"], abs=0.05)
        with pytest.raises(UsageError, match="fills no masks"):
            run(tmp_path / "masked", settings(**chosen, masking=Masking(rate=0.3)))


class TestErrors:
    @pytest.mark.parametrize(("name", "longest"), [("xlm-roberta", 39), ("mpnet", 38)])
    def test_positions_that_are_counted_from_the_padding(self, encoders, name, longest, tmp_path):
        result = run(tmp_path / "longest", settings(init=str(encoders[name]), length=longest, steps=1))
        assert result.training.step == 1
        with pytest.raises(UsageError, match=f"at most {longest} tokens, the positions"):
            run(tmp_path, settings(init=str(encoders[name]), length=longest + 1))

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("bart", r"found an encoder with a decoder \(bart\)"),
            ("t5", "transformers can mask tokens for, found 't5'"),
            ("gpt2", "found a causal model"),
        ],
    )
    def test_models_that_are_no_encoder_with_masks(self, encoders, name, message, tmp_path):
        with pytest.raises(EncoderError, match=message) as caught:
            run(tmp_path, settings(init=str(encoders[name])))
        assert "\n" not in caught.value.message

    def test_sequence_longer_than_positions(self, encoders, tmp_path):
        with pytest.raises(UsageError, match="at most 40 tokens, the positions") as caught:
            run(tmp_path, settings(init=str(encoders["bert"]), length=64))
        assert caught.value.remedy == "--length 40"

    def test_no_mask_token(self, tokenizer, tmp_path):
        loaded = AutoTokenizer.from_pretrained(tokenizer)
        loaded.mask_token = None
        loaded.save_pretrained(tmp_path / "maskless")
        with pytest.raises(DataError, match="a tokenizer with a mask token"):
            run(tmp_path / "model", settings(tmp_path / "maskless"))

    @pytest.mark.parametrize("texts", [[], [""], ["fox fox fox"] * 4])
    def test_empty_and_one_word(self, tokenizer, tmp_path, texts):
        with pytest.raises(DataError, match="expected"):
            pretrain(lambda: map(SourceText, texts), tmp_path, settings(tokenizer), source="bad")

    def test_vocabulary_larger_than_the_corpus_supports(self, tmp_path):
        with pytest.raises(DataError, match="supports a vocabulary of 5000"):
            run(tmp_path, settings(vocabulary=VocabularySettings(size=5000)))

    def test_checkpoint_of_another_config(self, tokenizer, tmp_path):
        run(tmp_path, settings(tokenizer, steps=2))
        before = weights(tmp_path)
        with pytest.raises(CheckpointError, match="recipe was 'roberta', now 'electra'"):
            run(tmp_path, settings(tokenizer, steps=2, recipe="electra"))
        assert weights(tmp_path) == before

    def test_learning_rate_that_diverges(self, tokenizer, tmp_path):
        wild = {"learning_rate": 1e4, "warmup": 0.0, "clip": None, "save_every": 1}
        with pytest.raises(TrainingError, match="training stopped at step"):
            run(tmp_path, settings(tokenizer, steps=200, training=wild))
        assert list((tmp_path / "training" / "checkpoints").glob("step-*"))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"init": "a", "teacher": "b"}, "found both"),
            ({"init": "a", "tokenizer": "b"}, "keeps its own tokenizer"),
            ({"recipe": "distilbert"}, "needs a teacher"),
            ({"recipe": "xlnet"}, "unknown recipe"),
        ],
    )
    def test_settings_that_contradict(self, changes, message):
        with pytest.raises(UsageError, match=message):
            settings(**changes)
