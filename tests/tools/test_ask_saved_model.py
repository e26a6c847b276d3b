"""tools/ask_saved_model.py, run as its user runs it. TensorFlow only writes the models here."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text

pytestmark = pytest.mark.once

SCRIPT = Path(__file__).parents[2] / "tools" / "ask_saved_model.py"


class Shouter(tf.Module):
    """Strings to strings, and numbers of several types to numbers."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def shout(self, text):
        # `same` hands the fed tensor itself back: its memory belongs to the caller.
        return {"text": tf.strings.join([text, "!"]), "same": tf.identity(text)}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 2], tf.int32, name="ids"),
            tf.TensorSpec([], tf.float32, name="scale"),
        ]
    )
    def score(self, ids, scale):
        return {
            "product": tf.cast(ids, tf.float32) * scale,
            "positive": ids > 0,
            "constant": tf.constant("a string that is too long to be kept inside the tensor"),
        }


FREE = {
    "times": tf.constant(2, tf.int64),
    "less": tf.constant(-3),
    "scale": tf.constant(0.1),
    "exact": tf.constant(0.1, tf.float64),
    "zero": tf.constant(0),
    "on": tf.constant(True),
    "end": tf.constant("é"),
    "many": tf.constant([1.5, -2.5]),
    "same": tf.constant([7, 7, 7], tf.int64),
}


class Defaults(tf.Module):
    """Returns a text and inputs of every type that have a default."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name="text"),
            *(tf.TensorSpec(v.shape, v.dtype, name=k) for k, v in FREE.items()),
        ]
    )
    def echo(
        self,
        text,
        times=FREE["times"],
        less=FREE["less"],
        scale=FREE["scale"],
        exact=FREE["exact"],
        zero=FREE["zero"],
        on=FREE["on"],
        end=FREE["end"],
        many=FREE["many"],
        same=FREE["same"],
    ):
        rows = {"text": text, "times": times, "less": less, "scale": scale, "exact": exact}
        rows |= {"zero": zero, "on": on, "end": end, "many": many, "same": same}
        return {f"{name}_out": tf.identity(value) for name, value in rows.items()}


class Splitter(tf.Module):
    """Uses an operation of tensorflow_text."""

    def __init__(self):
        super().__init__()
        self.tokenizer = tensorflow_text.WhitespaceTokenizer()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def split(self, text):
        return {"words": self.tokenizer.tokenize(text).to_tensor()}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model folder with version 2, and an older 1 that answers differently."""
    folder = tmp_path_factory.mktemp("model")
    module = Shouter()
    tf.saved_model.save(module, folder / "1", signatures={"serving_default": module.score})
    signatures = {"serving_default": module.shout, "score": module.score}
    tf.saved_model.save(module, folder / "2", signatures=signatures)
    return folder


def ask(*arguments):
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def answers(*arguments):
    done = ask(*arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def refusal(*arguments):
    done = ask(*arguments)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_texts_are_answered_row_by_row(model):
    texts = ["ROMEO:", "", "naïve 猫", "long " * 100]
    arguments = [argument for text in texts for argument in ("--text", text)]
    assert answers(model, *arguments) == [{"text": text + "!", "same": text} for text in texts]


def test_a_version_folder_is_asked_itself(model):
    (row,) = answers(model / "2", "--text", "a")
    assert row["text"] == "a!"


def test_versions_are_compared_as_numbers(model, tmp_path):
    (tmp_path / "9").symlink_to(model / "1")
    (tmp_path / "10").symlink_to(model / "2")
    (row,) = answers(tmp_path, "--text", "a")
    assert row["text"] == "a!"


def test_numbers(model):
    inputs = json.dumps({"ids": [[1, -2], [3, 4]], "scale": 0.5})
    (answer,) = answers(model, "--signature", "score", "--inputs", inputs)
    assert answer == {
        "product": [[0.5, -1.0], [1.5, 2.0]],
        "positive": [[True, False], [True, True]],
        "constant": "a string that is too long to be kept inside the tensor",
    }


def test_defaults_stand_for_what_is_left_out(tmp_path):
    module = Defaults()
    tf.saved_model.save(module, tmp_path, signatures={"serving_default": module.echo})
    (answer,) = answers(tmp_path, "--text", "a")
    expected = {f"{name}_out": np.array(value).tolist() for name, value in FREE.items()}
    expected |= {"text_out": ["a"], "end_out": "é"}
    assert answer == expected
    inputs = json.dumps({"text": ["b"], "times": 5, "on": False})
    (answer,) = answers(tmp_path, "--inputs", inputs)
    assert answer == {**expected, "text_out": ["b"], "times_out": 5, "on_out": False}
    said = refusal(tmp_path, "--inputs", '{"times": 5}')
    assert "must be text; free to give are end, exact" in said
    assert "received times" in said


def test_operations_of_tensorflow_text_are_loaded(tmp_path):
    module = Splitter()
    tf.saved_model.save(module, tmp_path, signatures={"serving_default": module.split})
    assert answers(tmp_path, "--text", "to be") == [{"words": ["to", "be"]}]


def test_says_that_python_tensorflow_stays_out(model):
    said = ask(model, "--text", "a").stderr
    assert f"TensorFlow {tf.__version__}" in said
    assert "imported none." in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--signature", "chat", "--text", "a"], r"one of the model's (score, serving_default)"),
        (["--signature", "score", "--text", "a"], "this one has ids, scale: use --inputs"),
        (["--inputs", "[1"], "--inputs is not JSON"),
        (["--inputs", "[1]"], "--inputs must be a JSON object"),
        (["--inputs", '{"txt": ["a"]}'], "the inputs must be text; received txt"),
        (["--inputs", '{"text": "a"}'], "'text' must be string of shape [any]; received shape []"),
        (["--inputs", '{"text": [1]}'], "'text' must be string of shape [any]; received [1]"),
    ],
)
def test_bad_requests_are_named(model, arguments, message):
    assert message in refusal(model, *arguments)


@pytest.mark.parametrize(
    "ids", [[[1.5, 2]], [[1, 2], [3]], [[1, 2**31]], [[1, 2, 3]], [["a", "b"]]]
)
def test_bad_numbers_are_named(model, ids):
    inputs = json.dumps({"ids": ids, "scale": 1})
    said = refusal(model, "--signature", "score", "--inputs", inputs)
    assert "'ids' must be int32 of shape [any, 2]; received" in said


def test_bad_folders_are_named(tmp_path):
    assert "does not exist" in refusal(tmp_path / "missing", "--text", "a")
    assert "is not a SavedModel" in refusal(tmp_path, "--text", "a")
    (tmp_path / "1").mkdir()
    assert "1 is not a SavedModel" in refusal(tmp_path, "--text", "a")
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"not a protocol buffer")
    assert "cannot be read" in refusal(tmp_path, "--text", "a")
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"")
    assert "no graph with the tag 'serve'" in refusal(tmp_path, "--text", "a")
