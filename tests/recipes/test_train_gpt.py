import dataclasses
import hashlib
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import types

import keras
import numpy as np
import pytest

import keras_arch as ka
from tests.training.cluster import run_workers

PROJECT = pathlib.Path(__file__).parents[2]
TEXT = "the quick brown fox jumps over the lazy dog.\n" * 40


@pytest.fixture
def recipe(monkeypatch):
    """The recipe as a module, with the export (tested in tests/serving) noted down instead."""
    monkeypatch.syspath_prepend(str(PROJECT / "recipes"))
    names = ("parts.training_run", "parts.text_model", "train_gpt")
    shared, road, module = map(importlib.import_module, names)
    exports = []
    monkeypatch.setattr(
        road,
        "export_model",
        lambda folder, max_new_tokens: exports.append((folder, max_new_tokens)),
    )
    return types.SimpleNamespace(
        main=road.main,
        command_to_go_on=shared.command_to_go_on,
        Settings=module.Settings,
        exports=exports,
    )


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT)
    return path


def small(recipe, folder, corpus, **changes):
    settings = recipe.Settings(
        run_folder=folder,
        data=str(corpus),
        layers=1,
        heads=1,
        width=8,
        context=8,
        batch_size=4,
        steps=4,
        evaluate_every=2,
        evaluation_batch_size=16,
        warmup_steps=1,
        samples=2,
        sample_tokens=10,
        jit_compile="auto" if keras.backend.backend() == "jax" else "no",
    )
    return dataclasses.replace(settings, **changes)


def test_a_run_writes_its_folder_and_the_same_command_prints_it(recipe, tmp_path, corpus, capsys):
    settings = small(recipe, tmp_path / "run", corpus)
    recipe.main(settings)
    folder = tmp_path / "run"
    report = json.loads((folder / "report.json").read_text())
    assert report["backend"] == keras.backend.backend()
    assert report["steps"] == 4
    assert report["validation_tokens"] == len(TEXT) - int(len(TEXT) * 0.9) - 1
    assert report["perplexity"] == pytest.approx(np.exp(report["validation_loss"]))
    assert report["validation_loss"] == pytest.approx(validation_loss(folder), rel=1e-4)
    assert (folder / "curves.png").stat().st_size > 1000
    assert len((folder / "samples.txt").read_text().split("\n\n----\n\n")) == 2
    assert len((folder / "log.csv").read_text().splitlines()) == 3
    assert recipe.exports == [(folder, 4)]
    capsys.readouterr()
    before = (folder / "report.json").stat().st_mtime_ns
    recipe.main(settings)
    assert json.loads(capsys.readouterr().out) == report
    assert (folder / "report.json").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="was started with width=8; received width=16"):
        recipe.main(dataclasses.replace(settings, width=16))


def validation_loss(folder):
    """The saved model's mean cross-entropy on the last tenth of the text, by numpy."""
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    ids = np.array(tokenizer.encode(TEXT))[int(len(TEXT) * 0.9) :]
    total = 0.0
    for start in range(0, len(ids) - 1, 8):
        row = ids[start : start + 9]
        inputs = {"token_ids": row[None, :-1], "valid": np.ones((1, len(row) - 1), bool)}
        logits = keras.ops.convert_to_numpy(model(inputs))[0].astype("float64")
        logits -= logits.max(-1, keepdims=True)
        nats = np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(row) - 1), row[1:]]
        total += nats.sum()
    return total / (len(ids) - 1)


def test_other_settings_run_too(recipe, tmp_path, corpus):
    settings = small(
        recipe,
        tmp_path / "run",
        corpus,
        architecture="llama",
        heads=2,
        tokenizer="byte_pair",
        vocabulary_size=270,
        accumulate=2,
        steps_per_execution=1 if keras.backend.backend() == "torch" else 4,
        dropout=0.1,
        label_smoothing=0.1,
        ema=0.9,
        precision="bfloat16",
        patience=1,
    )
    recipe.main(settings)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["validation_tokens"] < report["validation_characters"]
    bits = report["validation_loss"] * report["validation_tokens"] / np.log(2)
    assert report["bits_per_character"] == pytest.approx(bits / report["validation_characters"])
    tokenizer = ka.text.load_tokenizer(tmp_path / "run" / "tokenizer")
    assert isinstance(tokenizer, ka.text.BytePairTokenizer)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 5}, "steps=5, evaluate_every=2"),
        ({"accumulate": 3}, "accumulate=3, batch_size=4"),
        ({"steps_per_execution": 3}, "steps_per_execution=3, evaluate_every=2, micro_batches=1"),
        ({"accumulate": 0}, "accumulate=0, batch_size=4"),
        ({"strategy": "multiworker"}, "TF_CONFIG; it names 0|several workers"),
        ({"batch_size": 0, "accumulate": 1}, "batch_size=0"),
        ({"heads": 3}, "heads must divide width; received width=8, heads=3"),
        ({"warmup_steps": 4}, "warmup_steps=4, steps=4"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0"),
        ({"temperature": 0.0}, "temperature=0.0"),
        ({"top_k": 0}, "k=0"),
        ({"context": 1}, "context=1"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 2**32}, "seed=4294967296"),
        ({"samples": 0}, "samples=0"),
        ({"sample_tokens": 0}, "sample_tokens=0"),
        ({"evaluation_batch_size": 0}, "evaluation_batch_size=0"),
        ({"clip": 0.0}, "global_clipnorm=0.0"),
        ({"label_smoothing": 1.0}, "label_smoothing=1.0"),
        ({"patience": -1}, "patience=-1"),
        ({"ema": 1.0}, "ema=1.0"),
        ({"tokenizer": "byte_pair", "vocabulary_size": 256}, "vocabulary_size=256"),
        ({"data": "no such text"}, "no such text"),
    ],
)
def test_bad_settings_are_named_before_anything_is_written(
    recipe, tmp_path, corpus, changes, message
):
    with pytest.raises(ValueError, match=message):
        recipe.main(small(recipe, tmp_path / "run", corpus, **changes))
    assert not (tmp_path / "run").exists()


def test_the_evaluation_batch_must_divide_over_the_replicas(recipe, tmp_path, corpus):
    settings = small(recipe, tmp_path / "run", corpus, evaluation_batch_size=5)
    with pytest.raises(ValueError, match="2 replicas; received evaluation_batch_size=5"):
        settings.check(ka.training.Strategy("mirrored", replicas=2))


def test_bad_settings_remove_no_earlier_run(recipe, tmp_path, corpus):
    ka.training.RunFolder(tmp_path / "run", {}).close()
    before = (tmp_path / "run" / "settings.json").read_text()
    with pytest.raises(ValueError, match="heads=3"):
        recipe.main(small(recipe, tmp_path / "run", corpus, heads=3, overwrite=True))
    assert (tmp_path / "run" / "settings.json").read_text() == before


def test_a_run_knows_its_text(recipe, tmp_path, corpus, monkeypatch):
    """Also where the corpus asked for was replaced by another one."""
    titles = []
    monkeypatch.setattr(ka.training, "plot_curves", lambda _, path, title: titles.append(title))
    monkeypatch.setattr(ka.text, "find_corpus", lambda name: [corpus])
    settings = dataclasses.replace(
        small(recipe, tmp_path / "run", corpus), data="shakespeare", sample_tokens=1
    )
    recipe.main(settings)
    name, digest = f"{tmp_path.name}/corpus.txt", hashlib.sha256(TEXT.encode()).hexdigest()
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["corpus"] == {"files": [name], "sha256": digest}
    assert titles == [f"gpt2 on {name}, {keras.backend.backend()}"]
    corpus.write_text(TEXT + "x")
    other = hashlib.sha256(f"{TEXT}x".encode()).hexdigest()
    with pytest.raises(ValueError, match=f"(?s)corpus=.*{digest}.*received corpus=.*{other}"):
        recipe.main(settings)


def test_the_command_to_go_on_keeps_what_it_resumes(recipe):
    arguments = ["recipes/train_gpt.py", "--overwrite", "--data", "my text.txt", "--no-overwrite"]
    expected = "python recipes/train_gpt.py --data 'my text.txt'"
    assert recipe.command_to_go_on(arguments) == expected


def start(folder, corpus, *more):
    """Starts the recipe as a user does, for longer than any test."""
    flags = ["--layers=1", "--heads=1", "--width=8", "--context=8", "--batch-size=4"]
    flags += [
        "--steps=200000",
        "--evaluate-every=20",
        "--run-folder",
        str(folder),
        "--data",
        str(corpus),
        *more,
    ]
    return subprocess.Popen(
        [sys.executable, str(PROJECT / "recipes" / "train_gpt.py"), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
    )


def test_sigterm_ends_with_a_line_how_to_go_on(tmp_path, corpus):
    process = start(tmp_path / "run", corpus)
    for line in process.stdout:
        if line.startswith("Epoch 2/"):
            process.send_signal(signal.SIGTERM)
            break
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 143, err
    assert "interrupted by SIGTERM. To go on from the last checkpoint" in out
    assert list((tmp_path / "run" / "checkpoints").glob("step-*"))


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow only")
def test_two_workers_write_one_run_folder(tmp_path, corpus):
    command = [str(PROJECT / "recipes" / "train_gpt.py"), "--strategy=multiworker"]
    command += ["--layers=1", "--heads=1", "--width=8", "--context=8", "--batch-size=4"]
    command += ["--steps=4", "--evaluate-every=2", "--warmup-steps=1", "--sample-tokens=10"]
    command += ["--evaluation-batch-size=16", f"--data={corpus}", f"--run-folder={tmp_path}/run"]
    (chief, printed), (other, nothing) = run_workers([command, command], PROJECT)
    assert (chief, other) == (0, 0), printed + nothing
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["replicas"] == 2
    assert report["steps"] == 4
    assert report["validation_loss"] == pytest.approx(validation_loss(tmp_path / "run"), rel=1e-4)
    assert '"validation_loss"' in printed
    assert '"validation_loss"' not in nothing
    assert (tmp_path / "run" / "export" / "1" / "saved_model.pb").exists()


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--heads", "3", "heads must divide width; received width=8, heads=3."),
        ("--data", "python-docs", "[Errno 20] Not a directory: "),
    ],
)
def test_an_error_is_one_line(tmp_path, corpus, monkeypatch, flag, value, message):
    monkeypatch.setenv("XDG_CACHE_HOME", str(corpus))
    process = start(tmp_path / "run", corpus, flag, value)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert err.strip().splitlines()[-1].startswith(f"train_gpt: {message}")
