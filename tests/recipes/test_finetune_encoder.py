"""The road from an encoder, pretrained or not, to one that names texts or their words."""

import csv
import dataclasses
import importlib
import json
import pathlib
import types

import keras
import numpy as np
import pytest

import keras_arch as ka
from tests.contracts.tiny import build
from tests.recipes.encoders import PIECES, config, pretrained, small, values

PROJECT = pathlib.Path(__file__).parents[2]
LINES = ["ham\tthe cat sleeps", "spam\ta red dog", "ham\tcats", "spam\tred red", "ham\tthe dog"]
QUESTIONS = [
    "the red\tcats\ta red dog the cats sleep a dog",
    "a dog\tred dog\tred dog the cat red dog\t16",
    "cats sleep\tthe dog\tthe dog",
    "the cat the red dog the cats\ta\tsleep a",
]
WORDS = "the\tO\nred\tCOLOUR\ncats\tO\n\na\tO\nredder\tCOLOUR\ndog\tO\n"


@pytest.fixture
def recipe(monkeypatch):
    """The recipe; the export, tested elsewhere, is noted down instead."""
    monkeypatch.syspath_prepend(str(PROJECT / "recipes"))
    names = ("finetune_encoder", "parts.initial_encoder", "parts.training_run")
    module, initial, run = map(importlib.import_module, names)
    exports = []
    monkeypatch.setattr(module, "export_model", lambda *paths, between: exports.extend(paths))
    return types.SimpleNamespace(
        main=module.main,
        Settings=module.Settings,
        read_initial=initial.read_initial,
        kinds=module.KINDS,
        make_model=run.make_model,
        exports=exports,
    )


def settings(recipe, tmp_path, **changes):
    files = {"train.tsv": "\n".join(LINES * 2), "validation.tsv": "\n".join(LINES)}
    files |= {"words.tsv": WORDS, "questions.tsv": "\n".join(QUESTIONS)}
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    return recipe.Settings(**(small(tmp_path) | changes))


@pytest.fixture
def encoder(tmp_path):
    return pretrained(tmp_path / "initial")


def test_classes_from_a_pretrained_encoder(recipe, tmp_path, encoder):
    # No update moves a weight: those of the run in the end are those it began with.
    rates = {"learning_rate": 1e-30, "weight_decay": 0.0}
    asked = settings(recipe, tmp_path, **rates)
    recipe.main(asked)
    folder = tmp_path / "run"
    report = json.loads((folder / "report.json").read_text())
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    initial, found = values(encoder), values(model)
    new = {path for path in found if path.startswith(("pooler", "classes"))}
    assert len(new) == 4
    for path in found.keys() - new:
        np.testing.assert_array_equal(found[path], initial[path][: len(found[path])])
    assert len(found["position_table/table"]) == 8
    # The five texts of the validation data, by numpy.
    labels, texts = zip(*(line.split("\t") for line in LINES), strict=True)
    tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    rows = ka.objectives.pack_texts(
        [tokenizer.encode(text) for text in texts],
        length=8,
        classification_id=2,
        separator_id=3,
    )
    logits = keras.ops.convert_to_numpy(model(rows)).astype("float64")
    chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    truth = np.array([["ham", "spam"].index(label) for label in labels])
    nats = -np.log(chances[np.arange(5), truth])
    assert report["validation_loss"] == pytest.approx(nats.mean(), rel=1e-4)
    assert report["accuracy"] == (chances.argmax(-1) == truth).mean()
    assert (folder / "labels.txt").read_text() == "ham\nspam\n"
    with open(folder / "predictions.tsv", newline="") as file:
        header, *table = csv.reader(file, delimiter="\t")
    assert header == ["true", "found", "probability"]
    assert [row[0] for row in table] == [*labels]
    assert [float(row[2]) for row in table] == pytest.approx(chances.max(-1), abs=1e-5)
    for name in ("confusion.png", "reliability.png", "curves.png"):
        assert (folder / name).stat().st_size > 1000
    assert recipe.exports == [folder]
    with pytest.raises(ValueError, match="started with from_scratch=False"):
        recipe.main(dataclasses.replace(asked, from_scratch=True))


@pytest.mark.once
def test_answers_are_found_in_windows_of_texts(recipe, tmp_path, encoder):
    rates = {"learning_rate": 1e-30, "weight_decay": 0.0}
    asked = settings(recipe, tmp_path, task="answer", context=12, **rates)
    file = str(tmp_path / "questions.tsv")
    recipe.main(dataclasses.replace(asked, data=file, validation_data=file))
    folder = tmp_path / "run"
    report = json.loads((folder / "report.json").read_text())
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    nats, found, count = [], [], 0
    # The tokens of the answers, counted by hand: "a red dog the cat ##s sleep a dog".
    for line, answer in zip(QUESTIONS, [(4, 5), (4, 5), (0, 1), (1, 1)], strict=True):
        question, _, text = line.split("\t")[:3]
        rows, places, labels = ka.objectives.answer_windows(
            tokenizer.encode(question)[:6],
            tokenizer.encode(text),
            answer,
            length=12,
            stride=1,  # The longest question leaves 3 tokens.
            classification_id=2,
            separator_id=3,
        )
        logits = keras.ops.convert_to_numpy(model(rows)).astype("float64")
        best = ka.objectives.best_answer(logits, places)
        tokens = tokenizer.encode(text)[best.first : best.last + 1]
        found.append([tokenizer.decode(tokens), best.score])
        chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        nats += [*-np.log(np.take_along_axis(chances, labels[..., None], -1).ravel())]
        count += 2 * len(rows["token_ids"])
    assert report["validation_tokens"] == count
    assert report["validation_loss"] == pytest.approx(np.mean(nats), rel=1e-4)
    with open(folder / "predictions.tsv", newline="") as file:
        header, *table = csv.reader(file, delimiter="\t")
    assert header == ["question", "true", "found", "score", "exact_match", "f1"]
    assert [row[:2] for row in table] == [line.split("\t")[:2] for line in QUESTIONS]
    assert [row[2] for row in table] == [text for text, _ in found]
    assert [float(row[3]) for row in table] == pytest.approx([x for _, x in found], abs=1e-4)
    for name, column in (("exact_match", 4), ("f1", 5)):
        mean = 100 * np.mean([float(row[column]) for row in table])
        assert report[name] == pytest.approx(mean, abs=1e-3)
    assert report["questions"] == 4
    assert not (folder / "labels.txt").exists()
    assert recipe.exports == [folder]


@pytest.mark.once
def test_from_scratch_the_shape_stays_and_the_weights_go(recipe, tmp_path, encoder):
    asked = settings(recipe, tmp_path, from_scratch=True, task="tag", context=16)
    asked = dataclasses.replace(asked, data=str(tmp_path / "words.tsv"))
    asked = dataclasses.replace(asked, validation_data=asked.data)
    strategy = ka.training.strategy("one")
    model, _ = recipe.make_model(asked, strategy, asked.schedule(), len(PIECES))
    assert model.output.shape == (None, None, 2)
    initial, found = values(encoder), values(model)
    shared = initial.keys() & found.keys()
    assert {path.partition("/")[0] for path in shared} >= {"tokens", "position_table", "block_0"}
    assert all(found[path].shape == initial[path].shape for path in shared)
    assert not np.array_equal(found["tokens/table"], initial["tokens/table"])


@pytest.mark.once
def test_each_text_comes_once_an_epoch_and_steps_are_independent(recipe, tmp_path, encoder):
    asked = settings(recipe, tmp_path, batch_size=5)
    batches = [*asked.batches(0).take(4)]
    (again,) = asked.batches(3).take(1)
    np.testing.assert_array_equal(again[0]["token_ids"], batches[3][0]["token_ids"])
    first, second = (
        sorted(row.tobytes() for i in pair for row in batches[i][0]["token_ids"].numpy())
        for pair in ((0, 1), (2, 3))
    )
    assert first == second
    orders = [np.concatenate([batches[i][1] for i in pair]).tolist() for pair in ((0, 1), (2, 3))]
    assert sum(orders[0]) == sum(orders[1]) == 4
    assert orders[0] != orders[1]
    draw, steps = asked.validation()
    assert (steps, draw(0)[2].tolist()) == (1, [True] * 5)
    draw, steps = settings(recipe, tmp_path).validation()
    assert (steps, draw(1)[2].tolist()) == (2, [True, True, False])


@pytest.mark.once
def test_the_first_piece_of_a_word_tells_its_label(recipe, tmp_path, encoder):
    settings(recipe, tmp_path)
    texts, labels = recipe.kinds["tag"].read(tmp_path / "words.tsv")
    assert texts == ["the red cats", "a redder dog"]
    assert labels == [["O", "COLOUR", "O"]] * 2
    tokenizer, kind = ka.text.WordPieceTokenizer(PIECES), recipe.kinds["tag"]
    pieces = [kind.encode(tokenizer, text, 8) for text in texts]
    inputs, targets = kind.rows(tokenizer, pieces, [[1, 0, 1]] * 2, 8, ("token_ids", "valid"))
    assert inputs["token_ids"].tolist() == [
        [2, 5, 10, 6, 7, 3, 0, 0],
        [2, 9, 10, 12, 11, 3, 0, 0],
    ]
    assert targets.tolist() == [[-1, 1, 0, 1, -1, -1, -1, -1], [-1, 1, 0, -1, 1, -1, -1, -1]]
    (tmp_path / "bad.tsv").write_text("the\tO\nred dog\tO\n")
    with pytest.raises(ValueError, match=r"\['red dog', 'O'\] on line 2"):
        recipe.kinds["tag"].read(tmp_path / "bad.tsv")


def electra_classifier():
    """A classifier of ELECTRA's published kind."""
    shape = dataclasses.asdict(config())
    encoder = build(ka.models.ELECTRAConfig(**shape, embedding_width=4))
    return ka.models.sequence_classification(ka.models.with_pooler(encoder, "gelu"), 3)


@pytest.mark.once
@pytest.mark.parametrize(
    "make",
    [
        lambda: ka.models.token_vectors(build(config())),
        lambda: ka.models.sequence_classification(build(config()), 3),
        electra_classifier,
    ],
    ids=["bert", "classifier", "electra"],
)
def test_a_hugging_face_folder_to_begin_with(recipe, tmp_path, make):
    model = make()
    folder = tmp_path / "checkpoint"
    ka.checkpoints.save(model, folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    initial = recipe.read_initial(folder)
    assert initial.config.context_length == config().context_length
    assert initial.tokenizer.vocabulary == tuple(PIECES)
    assert not initial.tokenizer.lowercase
    expected, found = values(model), values(initial.model)
    left = {path.partition("/")[0] for path in expected.keys() - found.keys()}
    assert left <= {"pooler", "classes"}
    assert all(np.array_equal(found[path], expected[path]) for path in found)


@pytest.mark.once
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "nothing"}, "data must be a file; received data='nothing'"),
        ({"initial": "nothing"}, "initial='nothing', which has neither report.json nor config"),
        ({"context": 17}, "context must be from 3 to 16, .* context=17"),
        ({"context": 2}, "context=2"),
        ({"accumulate": 2}, "accumulate=2, batch_size=3"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"task": "answer", "context": 6}, "context must be longer .* context=6"),
        ({"task": "answer", "label_smoothing": 0.1}, "label_smoothing=0.1"),
        ({"task": "answer"}, r"train.tsv must have a question, .* received \['ham', .* on line 1"),
    ],
)
def test_bad_settings_are_named_before_anything_is_written(
    recipe, tmp_path, encoder, changes, message
):
    with pytest.raises(ValueError, match=message):
        recipe.main(settings(recipe, tmp_path, **changes))
    assert not (tmp_path / "run").exists()


@pytest.mark.once
def test_labels_to_evaluate_on_are_known(recipe, tmp_path, encoder):
    asked = settings(recipe, tmp_path)
    (tmp_path / "validation.tsv").write_text("eggs\tthe cat\n")
    with pytest.raises(ValueError, match="received 'eggs' too"):
        recipe.main(asked)
    (tmp_path / "data.tsv").write_text("eggs\tthe cat\n")
    with pytest.raises(ValueError, match="two labels or more; received 'eggs' alone"):
        recipe.main(settings(recipe, tmp_path, data=str(tmp_path / "data.tsv")))
    assert not (tmp_path / "run").exists()
