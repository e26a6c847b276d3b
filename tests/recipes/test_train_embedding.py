"""The road from an encoder to vectors of texts."""

import importlib
import json
import pathlib
import shutil
import types

import keras
import numpy as np
import pytest

import keras_arch as ka
from tests.recipes.encoders import pretrained, small, values

LINES = ["the cat\ta cat sleeps", "red dogs\ta red dog", "cats\tthe cats", "sleep\tthe dog sleeps"]


@pytest.fixture
def recipe(monkeypatch):
    """The recipe; the export, tested elsewhere, is noted down instead."""
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2] / "recipes"))
    module = importlib.import_module("train_embedding")
    exports = []
    monkeypatch.setattr(module, "export_model", exports.append)
    return types.SimpleNamespace(module=module, exports=exports)


def settings(recipe, tmp_path, **changes):
    (tmp_path / "train.tsv").write_text("\n".join(LINES * 2) + "\n")
    (tmp_path / "validation.tsv").write_text("\n".join(LINES) + "\n")
    return recipe.module.Settings(**(small(tmp_path) | changes))


@pytest.mark.once
def test_vectors_from_a_pretrained_encoder(recipe, tmp_path):
    initial = values(pretrained(tmp_path / "initial"))
    # No update moves a weight: those of the run in the end are those it began with.
    rates = {"learning_rate": 1e-30, "weight_decay": 0.0}
    recipe.module.main(settings(recipe, tmp_path, scale=5.0, **rates))
    folder = tmp_path / "run"
    report = json.loads((folder / "report.json").read_text())
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    for path, value in values(model).items():
        np.testing.assert_array_equal(value, initial[path][: len(value)])
    tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    firsts, seconds = (
        keras.ops.convert_to_numpy(
            model(
                ka.objectives.pack_texts(
                    [tokenizer.encode(text) for text in texts],
                    length=8,
                    classification_id=2,
                    separator_id=3,
                )
            )
        ).astype("float64")
        for texts in zip(*(line.split("\t") for line in LINES), strict=True)
    )
    # A batch of three of the four; the fourth has no batch, but is among what is searched.
    cosines = firsts @ seconds.T
    logits = 5 * cosines[:3, :3]
    nats = np.log(np.exp(logits).sum(-1)) - np.diag(logits)
    assert report["validation_loss"] == pytest.approx(nats.mean(), rel=1e-4)
    ranks = 1 + (cosines > np.diag(cosines)[:, None]).sum(axis=1)
    assert report["recall_at_1"] == (ranks == 1).mean()
    assert report["recall_at_10"] == 1
    assert report["mean_reciprocal_rank"] == pytest.approx((1 / ranks).mean())
    assert recipe.exports == [folder]


def embedded(model, asked, texts):
    return keras.ops.convert_to_numpy(model(asked.rows(texts))).astype("float64")


@pytest.mark.once
def test_hard_negatives_are_those_of_the_encoder_as_it_is(recipe, tmp_path, monkeypatch):
    pretrained(tmp_path / "initial")
    numbers = {"negatives": 2, "negatives_from": 3, "learning_rate": 0.05}
    numbers |= {"steps": 4, "refresh_every": 2, "evaluate_every": 1, "dropout": 0.1}
    asked = settings(recipe, tmp_path, **numbers)
    sources, targets = zip(*(line.split("\t") for line in LINES * 2), strict=True)
    mine, mined = recipe.module.Settings.mine, []

    def spied(self, model):
        # Exact search: all cosines, the text's own left out.
        queries, documents = (embedded(model, asked, texts) for texts in (sources, targets[:4]))
        cosines = queries @ documents.T
        cosines[np.arange(8), np.arange(8) % 4] = -np.inf
        expected = np.argsort(-cosines, axis=1)[:, :3]
        found = mine(self, model)
        assert found.tolist() == expected.tolist()
        mined.append(values(model))
        return found

    monkeypatch.setattr(recipe.module.Settings, "mine", spied)
    recipe.module.main(asked)
    folder = tmp_path / "run"
    names = sorted(path.name for path in folder.glob("*.npy"))
    assert names == ["negatives-00000000.npy", "negatives-00000002.npy"]
    assert len(mined) == 2
    changed = [path for path in mined[0] if not np.array_equal(mined[0][path], mined[1][path])]
    assert changed
    report = json.loads((folder / "report.json").read_text())
    model = keras.saving.load_model(folder / "model.keras", compile=False)

    # The three of the validation texts that fill a batch, each with two more that are wrong.
    (batch,) = asked.validation()
    inputs = {name: value.numpy() for name, value in batch[0].items()}
    first, second, wrong = (
        keras.ops.convert_to_numpy(
            model(
                {
                    name.removeprefix(f"{kind}_"): value.reshape(-1, 8)
                    for name, value in inputs.items()
                    if name.startswith(kind)
                }
            )
        )
        for kind in ("first", "second", "negative")
    )
    own = np.einsum("bd,bnd->bn", first, wrong.reshape(3, 2, -1))
    logits = 20 * np.concatenate([first @ second.T, own], axis=1).astype("float64")
    nats = np.log(np.exp(logits).sum(-1)) - np.diag(logits)
    assert report["validation_loss"] == pytest.approx(nats.mean(), rel=1e-4)

    # A run that was killed between two searches goes on to the same weights.
    ended = values(model)
    (folder / "report.json").unlink()
    (folder / "model.keras").unlink()
    shutil.rmtree(folder / "checkpoints" / "step-00000004")
    assert (folder / "checkpoints" / "step-00000003").exists()
    recipe.module.main(asked)
    assert len(mined) == 2
    again = values(keras.saving.load_model(folder / "model.keras", compile=False))
    for path, value in ended.items():
        np.testing.assert_array_equal(again[path], value, err_msg=path)


@pytest.mark.once
def test_a_batch_has_some_of_the_table(recipe, tmp_path):
    pretrained(tmp_path / "initial")
    asked = settings(recipe, tmp_path, negatives=2, negatives_from=3)
    texts = asked.paired[0].texts
    assert texts == [line.split("\t")[1] for line in LINES]
    table = np.array([[i for i in range(4) if i != own % 4] for own in range(8)])
    draw = asked.draw(0, lambda places: places % 8, table)
    number = {row.tobytes(): i for i, row in enumerate(asked.rows(texts)["token_ids"])}
    seen = set()
    for step in range(8):
        rows = draw(step)[0]["negative_token_ids"]
        assert rows.shape == (3, 2, 8)
        for place, row in zip((np.arange(3) + 3 * step) % 8, rows, strict=True):
            found = [number[ids.tobytes()] for ids in row]
            assert len({*found} & {*table[place]}) == 2
            seen |= {(place % 4, i) for i in found}
    assert len(seen) == 12
    again = asked.draw(0, lambda places: places % 8, table)(7)[0]["negative_token_ids"]
    np.testing.assert_array_equal(again, rows)


@pytest.mark.once
def test_retrieval_by_hand(recipe):
    queries = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    documents = np.array([[0.6, 0.8], [0.0, 1.0], [1.0, 0.0]])
    # The first finds 1.0, then its own 0.6; the second its own; the third 1.0, 0.8, its own 0.6.
    assert recipe.module.retrieval(queries, documents) == {
        "recall_at_1": pytest.approx(1 / 3),
        "recall_at_10": 1.0,
        "mean_reciprocal_rank": pytest.approx((1 / 2 + 1 + 1 / 3) / 3),
    }
    # Vectors that are all alike find nothing.
    assert recipe.module.retrieval(documents[[0] * 20], documents[[0] * 20]) == {
        "recall_at_1": 0.0,
        "recall_at_10": 0.0,
        "mean_reciprocal_rank": pytest.approx(1 / 20),
    }


@pytest.mark.once
def test_a_damaged_initial_run_is_named(recipe, tmp_path):
    pretrained(tmp_path / "initial")
    asked = settings(recipe, tmp_path)
    for content, message in (
        ("{", "settings.json must be a JSON file"),
        ('{"settings": null}', "settings.json must hold an object under settings; received None"),
    ):
        (tmp_path / "initial" / "settings.json").write_text(content)
        with pytest.raises(ValueError, match=message):
            recipe.module.main(asked)
    assert not (tmp_path / "run").exists()


@pytest.mark.once
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": 0.0}, "scale=0.0"),
        ({"scale": float("inf")}, "scale=inf"),
        ({"batch_size": 1}, "batch_size=1"),
        ({"batch_size": 4, "accumulate": 2}, "accumulate=2"),
        ({"batch_size": 5}, r"validation.tsv must hold a batch of pairs; received 4, batch_size=5"),
        ({"negatives": -1}, "negatives=-1"),
        ({"negatives": 2, "negatives_from": 1}, "negatives=2, negatives_from=1"),
        (
            {"negatives": 2, "refresh_every": 3, "evaluate_every": 2, "steps": 4},
            "refresh_every=3, evaluate_every=2",
        ),
        ({"negatives": 2}, "train.tsv .* negatives_from=100, and one text that has 3"),
    ],
)
def test_bad_settings_are_named_before_anything_is_written(recipe, tmp_path, changes, message):
    pretrained(tmp_path / "initial")
    with pytest.raises(ValueError, match=message):
        recipe.module.main(settings(recipe, tmp_path, **changes))
    assert not (tmp_path / "run").exists()
