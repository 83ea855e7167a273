from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from likewise.embedder.bert import BertConfig
from likewise.embedder.examples import Example
from likewise.embedder.hf_export import from_hugging_face, save_hugging_face, to_hugging_face
from likewise.embedder.masking import Masking
from likewise.embedder.masking_vocabulary import MaskingVocabulary
from likewise.embedder.presets import preset
from likewise.embedder.pretraining import PretrainingModel, ReplacedTokenModel
from likewise.embedder.recipes import RECIPES, recipe
from likewise.embedder.sentence_pairs import Pair
from likewise.errors import UsageError

SIZE = BertConfig(vocab_size=40, hidden_size=32, layers=2, heads=2, ffn_size=48, max_positions=32)
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{at}" for at in range(35))]
VOCABULARY = MaskingVocabulary.from_tokens(TOKENS, mask_token="[MASK]", special_tokens=TOKENS[:5])


def teacher_for(name: str) -> PretrainingModel | None:
    if not RECIPES[name].teacher:
        return None
    torch.manual_seed(1)
    return PretrainingModel(replace(SIZE, layers=4, pooler=False, dropout=0.0, attention_dropout=0.0))


def examples_for(name: str) -> list[Example]:
    """Texts that count upwards: the neighbours of a token tell what it is."""
    found = []
    for key in range(24):
        ids = (np.arange(14) + key) % 35 + 5
        if RECIPES[name].pairs != "none":
            first, second = ids[:7], ids[7:]
            label = key % 2
            parts = (second, first) if label else (first, second)
            found.append(Pair(*parts, label).example(cls_id=2, sep_id=3, key=key))
        else:
            special = np.array([True, *[False] * 14, True])
            found.append(Example(np.array([2, *ids, 3]), special, key))
    return found


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_learns_and_its_model_is_saved_for_auto_classes(name: str, tmp_path) -> None:
    from transformers import AutoModel

    chosen = recipe(name)
    teacher = teacher_for(name)
    torch.manual_seed(0)
    model = chosen.model(chosen.config(SIZE), teacher=teacher).train()
    objective = chosen.objective(VOCABULARY, teacher=teacher)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    examples = examples_for(name)
    losses = []
    for step in range(60):
        batch = objective.prepare(examples, draw=step, progress=step / 60)
        loss = objective.loss(model, batch)
        optimizer.zero_grad()
        loss.total().backward()
        optimizer.step()
        losses.append(loss.total().item())
    assert np.mean(losses[-10:]) < 0.93 * np.mean(losses[:5])
    unused = [key for key, parameter in model.named_parameters() if parameter.grad is None]
    assert unused == []

    model.eval()
    save_hugging_face(model, tmp_path)
    ids = torch.tensor([[2, 9, 10, 3]])
    with torch.no_grad():
        theirs = AutoModel.from_pretrained(tmp_path).eval()(ids).last_hidden_state
        torch.testing.assert_close(theirs, model.encoder(ids), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "model_type", "terms"),
    [
        ("bert", "bert", {"mlm": 1.0, "nsp": 1.0}),
        ("roberta", "roberta", {"mlm": 1.0}),
        ("albert", "albert", {"mlm": 1.0, "sop": 1.0}),
        ("electra", "electra", {"generator": 1.0, "discriminator": 50.0}),
        ("distilbert", "bert", {"soft": 5.0, "mlm": 2.0, "cosine": 1.0}),
        ("gpt", "gpt2", {"causal": 1.0}),
    ],
)
def test_recipes_combine_what_their_papers_do(name: str, model_type: str, terms: dict[str, float]) -> None:
    chosen = recipe(name)
    teacher = teacher_for(name)
    model = chosen.model(chosen.config(SIZE), teacher=teacher)
    assert to_hugging_face(model).config.model_type == model_type
    objective = chosen.objective(VOCABULARY, teacher=teacher)
    loss = objective.loss(model, objective.prepare(examples_for(name), draw=0))
    assert {term.name: term.weight for term in loss.terms} == terms


def test_published_shapes_come_out_of_published_sizes() -> None:
    assert recipe("bert").config(preset("bert-base")) == replace(preset("bert-base"), attention_dropout=0.0)
    assert recipe("albert").config(preset("albert-base")) == preset("albert-base")
    assert recipe("electra").config(preset("electra-small")) == replace(
        preset("electra-small"), attention_dropout=0.0
    )
    roberta = recipe("roberta").config(preset("roberta-base"))
    assert roberta == replace(preset("roberta-base"), attention_dropout=0.0, pooler=False)


def test_masking_as_published() -> None:
    bert, albert, electra = (recipe(name).masking for name in ("bert", "albert", "electra"))
    assert (bert.rate, bert.masked, bert.random, bert.duplicates) == (0.15, 0.8, 0.1, 10)
    assert recipe("roberta").masking.duplicates is None
    assert (albert.unit, albert.span_odds) == ("span", (1.0, 1 / 2, 1 / 3))
    assert (electra.masked, electra.random) == (0.85, 0.0)
    assert recipe("gpt").masking is None


def test_small_sizes_get_a_table_of_half_their_width() -> None:
    assert recipe("albert").config(preset("tiny")).embedding_size == 64
    assert recipe("electra").config(preset("mini")).embedding_size == 128


def test_changes_go_over_everything() -> None:
    config = recipe("albert").config(SIZE, vocab_size=77, dropout=0.3, embedding_size=9)
    assert (config.vocab_size, config.dropout, config.embedding_size) == (77, 0.3, 9)


def test_seed_and_other_masking_reach_the_objective() -> None:
    examples = examples_for("roberta")

    def seen(**options) -> list:
        return recipe("roberta").objective(VOCABULARY, **options).prepare(examples, draw=0).targets.tolist()

    assert seen() == seen(seed=0) != seen(seed=1)
    assert len(seen(masking=Masking(rate=1.0))) == 14 * 24


def test_electra_has_a_quarter_sized_generator() -> None:
    model = recipe("electra").model(recipe("electra").config(preset("mini"), vocab_size=50))
    assert isinstance(model, ReplacedTokenModel)
    assert (model.config.hidden_size, model.generator.config.hidden_size) == (256, 64)


def test_student_starts_from_its_teacher() -> None:
    teacher = teacher_for("distilbert")
    student = recipe("distilbert").model(replace(SIZE, layers=2), teacher=teacher)
    for mine, theirs in ((0, 0), (1, 3)):
        ours = student.encoder.layers[mine].state_dict()
        assert all(torch.equal(v, ours[k]) for k, v in teacher.encoder.layers[theirs].state_dict().items())
    with pytest.raises(UsageError, match="keep 1 to 4 layers, found 5"):
        recipe("distilbert").model(replace(SIZE, layers=5), teacher=teacher)


def test_teachers_and_vocabularies_are_asked_for_where_needed_only() -> None:
    with pytest.raises(UsageError, match="distilbert needs a teacher") as caught:
        recipe("distilbert").objective(VOCABULARY)
    assert caught.value.remedy == "likewise distill TEACHER CORPUS"
    with pytest.raises(UsageError, match="distilbert needs a teacher"):
        recipe("distilbert").model(SIZE)
    with pytest.raises(UsageError, match="no use for a teacher"):
        recipe("bert").objective(VOCABULARY, teacher=PretrainingModel(SIZE))
    with pytest.raises(UsageError, match="roberta masks tokens and needs a vocabulary"):
        recipe("roberta").objective(None)
    assert recipe("gpt").objective(None).name == "causal"
    with pytest.raises(UsageError, match="unknown recipe 'xlnet'; expected one of bert, roberta"):
        recipe("xlnet")


def test_every_recipe_names_its_paper_and_what_differs() -> None:
    for name, chosen in RECIPES.items():
        assert chosen.name == name
        assert any(char.isdigit() for char in chosen.paper)
        assert chosen.idea.endswith(".") and chosen.differs.endswith(".")


def test_continuation_keeps_the_shape_of_the_checkpoint() -> None:
    theirs = to_hugging_face(recipe("bert").model(recipe("bert").config(SIZE)))
    again = from_hugging_face(theirs)
    assert again.pair_head is not None
    plain = from_hugging_face(theirs, pair_head=False)
    assert plain.pair_head is None
