"""The road from pairs of sentences to BLEU."""

import csv
import importlib
import json
import pathlib
import types

import keras
import numpy as np
import pytest
import sacrebleu

import keras_arch as ka
from tests.serving.client import ask

PROJECT = pathlib.Path(__file__).parents[2]
WORDS = {"a": "ein", "red": "rot", "dog": "Hund", "cat": "Katze", "runs": "rennt"}
SOURCES = ["a dog runs", "a red cat", "a cat runs a red dog", "dog", "a red dog runs"]


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "recipes"))
    road, module = (
        importlib.import_module(name) for name in ("parts.pair_model", "train_translation")
    )
    return types.SimpleNamespace(main=road.main, Settings=module.Settings, road=road)


@pytest.fixture
def folder(tmp_path):
    """Sentences that are translated word by word, in three splits."""
    folder = tmp_path / "pairs"
    folder.mkdir()
    for split, times in (("train", 8), ("val", 1), ("test", 1)):
        lines = SOURCES * times
        (folder / f"{split}.en").write_text("\n".join(lines) + "\n")
        targets = [" ".join(WORDS[word] for word in line.split()) for line in lines]
        (folder / f"{split}.de").write_text("\n".join(targets) + "\n")
    return folder


def settings(recipe, tmp_path, folder, **changes):
    small = {"vocabulary_size": 270, "width": 8, "tokens": 128, "steps": 4, "evaluate_every": 2}
    small |= {"warmup_steps": 1, "beams": 2}
    jit = "auto" if keras.backend.backend() == "jax" else "no"
    return recipe.Settings(
        run_folder=tmp_path / "run",
        data=str(folder),
        jit_compile=jit,
        **(small | changes),
    )


def test_a_run_writes_its_folder(recipe, tmp_path, folder, capsys):
    # Long enough for the SavedModel to come to the same tokens, whatever it rounds otherwise.
    changes = {"attention": "general", "steps": 60, "evaluate_every": 30, "learning_rate": 0.02}
    asked = settings(recipe, tmp_path, folder, **changes)
    recipe.main(asked)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    with open(tmp_path / "run" / "predictions.tsv", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == ["source", "reference", "greedy", "beam 2"]
    assert [row[0] for row in rows] == SOURCES
    bleu = sacrebleu.metrics.BLEU()
    for column, name in enumerate(header[2:], 2):
        texts, references = [row[column] for row in rows], [row[1] for row in rows]
        expected = bleu.corpus_score(texts, [references]).score
        assert report["bleu"][name] == pytest.approx(expected, abs=0.01)
        assert set(report["bleu_by_source_words"][name]) == {"1-9"}
    assert "tok:13a" in report["bleu_signature"]
    assert report["bleu_signature"] in capsys.readouterr().out
    tokenizer = ka.text.load_tokenizer(tmp_path / "run" / "tokenizer")
    targets = [" ".join(WORDS[word] for word in line.split()) for line in SOURCES]
    tokens = sum(len(tokenizer.encode(text)) + 1 for text in targets)
    assert report["validation_tokens"] == tokens
    model = keras.saving.load_model(tmp_path / "run" / "model.keras", compile=False)
    assert model.name == "attention_seq2seq"
    pictures = [path.name for path in (tmp_path / "run").glob("alignment_*.png")]
    assert sorted(pictures) == ["alignment_1.png", "alignment_2.png", "alignment_3.png"]
    (answer,) = ask(tmp_path / "run" / "export" / "1", ("serving_default", {"text": SOURCES}))
    assert [text.strip() for text in answer["text"]] == [row[3] for row in rows]
    # A target begins with the begin id: after another one the tokens have other probabilities.
    begin, end = (tokenizer.special_ids[role] for role in ("begin", "end"))
    sources = [tokenizer.encode(text) for text in SOURCES]
    found = ka.generation.generate_beams(
        model, [[begin]] * 5, 64, asked.search(), [end], context={"source_ids": sources}
    )
    expected = found.log_probabilities[:, 0]
    np.testing.assert_allclose(answer["log_probabilities"], expected, atol=1e-4)
    recipe.main(asked)
    assert json.loads(capsys.readouterr().out) == report


@pytest.mark.parametrize(
    ("name", "changes", "pictures"),
    [
        ("seq2seq", {"attention": "none", "accumulate": 2, "precision": "bfloat16"}, 0),
        ("transformer", {"model": "transformer", "heads": 2}, 3),
    ],
    ids=["no attention, micro-batches", "transformer"],
)
def test_other_models(recipe, tmp_path, folder, monkeypatch, name, changes, pictures):
    exports = []
    monkeypatch.setattr(recipe.road, "export_model", lambda *_, beams, **__: exports.append(beams))
    recipe.main(settings(recipe, tmp_path, folder, steps=2, **changes))
    model = keras.saving.load_model(tmp_path / "run" / "model.keras", compile=False)
    assert model.name == name
    assert len([*(tmp_path / "run").glob("alignment_*.png")]) == pictures
    assert exports == [2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary_size": 257}, "vocabulary_size=257"),
        ({"beams": 0}, "width must be a positive integer; received width=0"),
        ({"width": 0}, "width=0"),
        ({"source": "fr"}, "must hold one of .'train.fr', 'train.fr.gz'."),
        (
            {"heads": 2},
            "heads is of model='transformer' alone; received heads=2, model='recurrent'",
        ),
        ({"tokens": 0}, "tokens must be a positive integer; received tokens=0"),
        ({"accumulate": 0}, "accumulate must be a positive integer; received accumulate=0"),
    ],
)
def test_bad_settings_are_named_before_anything_is_written(
    recipe, tmp_path, folder, changes, message
):
    with pytest.raises(ValueError, match=message):
        recipe.main(settings(recipe, tmp_path, folder, **changes))
    assert not (tmp_path / "run").exists()
