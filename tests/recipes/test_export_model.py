import importlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

import keras_arch as ka

PROJECT = pathlib.Path(__file__).parents[2]
RECIPE = PROJECT / "recipes" / "export_model.py"


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
    )


@pytest.fixture
def model():
    config = ka.models.GPT2Config(vocabulary_size=8, width=8, layers=1, heads=2, context_length=16)
    return ka.models.gpt2(config)


@pytest.fixture
def tokenizer():
    return ka.text.CharacterTokenizer("\nabcdef")


def answers(folder, *texts):
    asked = [argument for text in texts for argument in ("--text", text)]
    done = run(PROJECT / "tools" / "ask_saved_model.py", folder, *asked)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_run_of_any_backend_is_exported(model, tokenizer, tmp_path):
    model.save(tmp_path / "model.keras")
    tokenizer.save(tmp_path / "tokenizer")
    (tmp_path / "export" / "2").mkdir(parents=True)
    done = run(RECIPE, tmp_path, "--max-new-tokens", 5)
    assert done.returncode == 0, done.stderr
    assert f"Exported to {tmp_path / 'export' / '3'}." in done.stdout
    rows = answers(tmp_path / "export", "abc", "")
    assert [len(row["text"]) for row in rows] == [5, 5]
    assert sorted(path.name for path in (tmp_path / "export").iterdir()) == ["2", "3"]


@pytest.mark.once
def test_a_file_and_a_tokenizer_are_exported_elsewhere(model, tokenizer, tmp_path):
    model.save(tmp_path / "my.keras")
    tokenizer.save(tmp_path / "words")
    places = ["--tokenizer", tmp_path / "words", "--output", tmp_path / "served" / "mine"]
    # So low a temperature is greedy.
    done = run(RECIPE, tmp_path / "my.keras", *places, "--temperature", 1e-6)
    assert done.returncode == 1
    assert "max_new_tokens=32, context_length=16" in done.stderr
    options = ["--temperature", 1e-6, "--max-new-tokens", 9]
    done = run(RECIPE, tmp_path / "my.keras", *places, *options)
    assert done.returncode == 0, done.stderr
    (row,) = answers(tmp_path / "served" / "mine", "ab")
    assert row["text"] == ka.generate(model, "ab", 9, tokenizer=tokenizer).texts[0]


@pytest.mark.once
def test_an_encoder_is_exported_with_the_names_of_its_classes(tmp_path, monkeypatch):
    import tensorflow as tf

    monkeypatch.syspath_prepend(str(RECIPE.parent))
    export_model = importlib.import_module("export_model").export_model
    words = ka.text.WordPieceTokenizer.train(["the cat sat"], 40)
    config = ka.models.DistilBERTConfig(
        vocabulary_size=words.vocabulary_size, width=8, layers=1, heads=2, context_length=16
    )
    model = ka.models.sequence_classification(ka.models.distilbert(config), 2)
    model.save(tmp_path / "model.keras")
    words.save(tmp_path / "tokenizer")
    with pytest.raises(ValueError, match="an encoder cannot be decoded"):
        export_model(tmp_path)
    (tmp_path / "labels.txt").write_text("ham\nspäm\n")
    export_model(tmp_path)
    serve = tf.saved_model.load(str(tmp_path / "export" / "1")).signatures["serving_default"]
    answer = serve(text=tf.constant(["the cat"]))
    label = answer["label"].numpy()[0].decode()
    assert label == ["ham", "späm"][answer["probabilities"].numpy()[0].argmax()]


@pytest.mark.once
@pytest.mark.parametrize("missing", ["model.keras", "tokenizer"])
def test_what_is_missing_is_named(missing, tmp_path):
    for name in {"model.keras", "tokenizer"} - {missing}:
        (tmp_path / name).mkdir()
    done = run(RECIPE, tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1] == (
        "export_model: source must be a finished run or a .keras file; "
        f"there is no {tmp_path / missing}."
    )


def test_its_command_line_is_the_tools_too():
    tool = (PROJECT / "tools" / "export").read_text(encoding="utf-8")
    assert 'KERAS_BACKEND=tensorflow exec "$python" "$repository/recipes/export_model.py"' in tool
