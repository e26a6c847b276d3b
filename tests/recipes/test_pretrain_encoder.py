"""The road from a text to a pretrained encoder."""

import importlib
import json
import pathlib
import types

import keras
import numpy as np
import pytest

import keras_arch as ka

PROJECT = pathlib.Path(__file__).parents[2]
TEXT = "a red dog runs. the cat sleeps.\n" * 60


@pytest.fixture
def recipe(monkeypatch):
    """The recipe, with the export (tested in tests/serving) noted down instead."""
    monkeypatch.syspath_prepend(str(PROJECT / "recipes"))
    road, module = (
        importlib.import_module(name) for name in ("parts.text_model", "pretrain_encoder")
    )
    exports = []
    monkeypatch.setattr(road, "export_model", lambda path, max_new_tokens: exports.append(path))
    return types.SimpleNamespace(main=road.main, Settings=module.Settings, exports=exports)


def settings(recipe, tmp_path, **changes):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(TEXT)
    small = {"vocabulary_size": 280, "width": 8, "layers": 1, "heads": 2, "context": 12}
    small |= {"batch_size": 4, "evaluation_batch_size": 2, "evaluation_batches": 2, "samples": 2}
    small |= {"steps": 2, "evaluate_every": 1, "warmup_steps": 1, "rate": 0.3, "dropout": 0.0}
    jit = "auto" if keras.backend.backend() == "jax" else "no"
    small |= {"data": str(corpus), "jit_compile": jit}
    return recipe.Settings(run_folder=tmp_path / "run", **(small | changes))


def test_bert_learns_to_tell_masked_tokens(recipe, tmp_path):
    asked = settings(recipe, tmp_path, whole_words=True)
    recipe.main(asked)
    folder = tmp_path / "run"
    report = json.loads((folder / "report.json").read_text())
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    ids = np.array(tokenizer.encode(TEXT), "int32")
    draw = asked.evaluated(tokenizer, ids[int(len(ids) * 0.9) :])
    nats = []
    for inputs, targets, weights in map(draw, range(2)):
        logits = keras.ops.convert_to_numpy(model(inputs)).astype("float64")
        logits -= logits.max(-1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
        nats += [-logits[i, k, targets[i, k]] for i, k in np.argwhere(weights)]
    assert report["validation_tokens"] == len(nats)
    assert report["validation_loss"] == pytest.approx(np.mean(nats), rel=1e-4)
    assert recipe.exports == [folder]
    texts = (folder / "samples.txt").read_text().removesuffix("\n").split("\n\n----\n\n")
    assert len(texts) == 2
    for text in texts:
        masked, filled, original = (line.partition(": ")[2].strip() for line in text.split("\n"))
        assert original in " ".join(TEXT.replace(".", " . ").split())
        assert "[MASK]" not in original
        assert "[MASK]" in masked
        assert "[MASK]" not in filled


@pytest.mark.once
def test_electra_learns_to_tell_replaced_tokens(recipe, tmp_path):
    asked = settings(recipe, tmp_path, model="electra")
    recipe.main(asked)
    folder = tmp_path / "run"
    report = json.loads((folder / "report.json").read_text())
    # Four rows of 12 real tokens; a discriminator that knows nothing has ln 2 for each.
    assert report["validation_tokens"] == 4 * 12
    assert report["validation_loss"] == pytest.approx(np.log(2), abs=0.1)
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    assert model.name == "electra_replaced_tokens"
    assert recipe.exports == []
    texts = (folder / "samples.txt").read_text().split("\n\n----\n\n")
    assert [line.partition(":")[0] for line in texts[0].split("\n")[:3]] == [
        "replaced",
        "suspected",
        "original",
    ]


@pytest.mark.once
def test_the_generators_loss_counts_for_a_fiftieth(recipe, tmp_path):
    asked = settings(recipe, tmp_path, model="electra")
    tokenizer = asked.make_tokenizer([tmp_path / "corpus.txt"])
    ids = np.array(tokenizer.encode(TEXT), "int32")
    model = asked.build(asked.config(tokenizer.vocabulary_size))
    trained = asked.trained(model)
    inputs, targets, weights = (value for value in next(iter(asked.batches(tokenizer, ids, 0))))
    trained(inputs)
    (loss,) = trained.losses
    generator = next(x for x in trained.layers if x.name == "electra_masked_lm")
    names = [x.name for x in generator.inputs]
    logits = keras.ops.convert_to_numpy(generator({n: inputs[n] for n in names})).astype("float64")
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    told = inputs["masked_ids"].numpy()
    nats = [-logits[i, k, told[i, k]] for i, k in np.argwhere(told >= 0)]
    assert float(loss) == pytest.approx(np.mean(nats) / 50, rel=1e-5)
    # All its tokens are masked, and the tables are the discriminator's.
    assert (
        np.take_along_axis(inputs["token_ids"].numpy(), inputs["masked_positions"].numpy(), 1)[
            told >= 0
        ]
        == tokenizer.special_ids["mask"]
    ).all()
    assert generator.get_layer("tokens") is model.get_layer("tokens")
    assert targets.shape == weights.shape == (4, 12)


@pytest.mark.once
@pytest.mark.parametrize("model", ["bert", "roberta"])
def test_rows_are_masked_anew_and_depend_on_the_step_alone(recipe, tmp_path, model):
    asked = settings(recipe, tmp_path, model=model, context=40, batch_size=50, rate=0.15)
    tokenizer = asked.make_tokenizer([tmp_path / "corpus.txt"])
    special = tokenizer.special_ids
    ids = np.array(tokenizer.encode(TEXT), "int32")
    batches = [*asked.batches(tokenizer, ids, 0).take(3)]
    (again,) = asked.batches(tokenizer, ids, 2).take(1)
    for ours, theirs in zip(again[0].values(), batches[2][0].values(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    first, last = (
        (special["begin"], special["end"])
        if model == "roberta"
        else (special["classification"], special["separator"])
    )
    told = []
    for inputs, targets, weights in batches:
        assert set(inputs) == {"token_ids", "valid", "masked_positions"} | (
            {"type_ids"} if model == "bert" else set()
        )
        rows, places = inputs["token_ids"].numpy().copy(), inputs["masked_positions"].numpy()
        told.append(rows == special["mask"])
        for row, place, target, real in zip(rows, places, targets, weights, strict=True):
            row[place[real]] = target.numpy()[real]
        assert (rows[:, 0] == first).all()
        assert (rows[:, -1] == last).all()
        for row in rows:
            assert any((ids[i : i + 38] == row[1:-1]).all() for i in range(len(ids) - 37))
    assert not (told[0] == told[1]).all()
    # 150 rows of 38 tokens, 15 % of them told and 80 % of those masked: 0.12, +- 0.013.
    assert np.mean(np.array(told)[..., 1:-1]) == pytest.approx(0.12, abs=0.013)


@pytest.mark.once
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary_size": 6}, "at least 7 for tokenizer='word_piece'; received .*=6"),
        ({"model": "roberta", "vocabulary_size": 259}, "at least 260 for tokenizer='byte_pair'"),
        ({"model": "roberta", "whole_words": True}, "whole_words .* received model='roberta'"),
        ({"model": "electra", "accumulate": 2}, "model='electra' needs accumulate=1"),
        ({"rate": 0.0}, "rate=0.0"),
        ({"context": 3}, "context=3"),
        ({"heads": 3}, "width=8, heads=3"),
        ({"evaluation_batches": 0}, "evaluation_batches=0"),
        ({"data": "no such text"}, "no such text"),
    ],
)
def test_bad_settings_are_named_before_anything_is_written(recipe, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        recipe.main(settings(recipe, tmp_path, **changes))
    assert not (tmp_path / "run").exists()
