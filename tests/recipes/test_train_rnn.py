"""What differs from train_gpt: the models, and the state carried from batch to batch."""

import importlib
import json
import math
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

import keras_arch as ka

PROJECT = pathlib.Path(__file__).parents[2]
TEXT = "the quick brown fox jumps over the lazy dog.\n" * 40


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "recipes"))
    road, module = (importlib.import_module(name) for name in ("parts.text_model", "train_rnn"))
    monkeypatch.setattr(road, "export_model", lambda folder, max_new_tokens: None)
    return road, module


def settings(module, tmp_path, **changes):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(TEXT)
    small = {"layers": 1, "width": 8, "context": 8, "batch_size": 4, "evaluation_batch_size": 4}
    small |= {"steps": 4, "evaluate_every": 2, "warmup_steps": 1, "samples": 1, "sample_tokens": 4}
    jit = "auto" if keras.backend.backend() == "jax" else "no"
    return module.Settings(
        run_folder=tmp_path / "run", data=str(corpus), jit_compile=jit, **(small | changes)
    )


@pytest.mark.parametrize("model", ["ngram", "rnn", "lstm", "gru"])
def test_every_model_trains(recipe, tmp_path, model):
    road, module = recipe
    road.main(settings(module, tmp_path, model=model))
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["steps"] == 4
    assert 0 < report["validation_loss"] < 2 * math.log(30)
    trained = keras.saving.load_model(tmp_path / "run" / "model.keras", compile=False)
    assert trained.name == ("ngram" if model == "ngram" else f"{model}_lm")


def test_stateful_evaluation_reads_the_text_as_streams(recipe, tmp_path):
    road, module = recipe
    road.main(settings(module, tmp_path, model="gru", stateful=True, tokenizer="bytes"))
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    model = keras.saving.load_model(tmp_path / "run" / "model.keras", compile=False)
    ids = np.frombuffer(TEXT.encode(), "uint8")[int(len(TEXT) * 0.9) :].astype("int32")
    # Four streams, whole: what segments of 8 with the state carried must give.
    count = -(-(len(ids) - 1) // 4)
    total = 0.0
    for begin in range(0, len(ids) - 1, count):
        row = ids[begin : begin + count + 1]
        scores = model({"token_ids": row[None, :-1], "valid": np.ones((1, len(row) - 1), bool)})
        scores = np.float64(keras.ops.convert_to_numpy(scores))[0]
        nats = np.log(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1)) + scores.max(-1)
        total += (nats - scores[np.arange(len(row) - 1), row[1:]]).sum()
    assert report["validation_loss"] == pytest.approx(total / (len(ids) - 1), rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stateful": True, "evaluation_batch_size": 5}, "evaluation_batch_size=5, batch_size=4"),
        ({"stateful": True, "accumulate": 2}, "received accumulate=2"),
        ({"model": "ngram", "order": 0}, "order must be a positive integer; received order=0"),
        ({"layers": 0}, "layers=0"),
    ],
)
def test_bad_settings_are_named_before_anything_is_written(recipe, tmp_path, changes, message):
    road, module = recipe
    with pytest.raises(ValueError, match=message):
        road.main(settings(module, tmp_path, **changes))
    assert not (tmp_path / "run").exists()


def test_counted_ngrams_and_the_table(recipe, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(TEXT)
    importlib.import_module("count_ngrams").count_ngrams(tmp_path / "counted", str(corpus), order=3)
    report = json.loads((tmp_path / "counted" / "report.json").read_text())
    tokenizer = ka.text.CharacterTokenizer.from_text(TEXT)
    ids = np.array(tokenizer.encode(TEXT))
    cut = int(len(ids) * 0.9)
    counted = ka.analysis.KneserNey(ids[:cut], 3, tokenizer.vocabulary_size)
    assert report["validation_tokens"] == len(ids) - cut - 1
    assert report["validation_loss"] == pytest.approx(counted.nats(ids[cut:])[1:].mean())
    other = tmp_path / "worse"
    other.mkdir()
    (other / "report.json").write_text(json.dumps(report | {"bits_per_character": 9.0}))
    command = [sys.executable, str(PROJECT / "tools" / "compare_runs.py"), str(other)]
    command += [str(tmp_path / "counted"), "--plot", str(tmp_path / "bars.png")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == ["run", "counted", "worse"]
    assert rows[2][-1] == "9.000"
    assert (tmp_path / "bars.png").stat().st_size > 1000
    report["corpus"]["sha256"] = "another"
    (other / "report.json").write_text(json.dumps(report))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "folders must hold runs on one text; received 2 texts" in done.stderr
