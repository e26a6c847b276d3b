import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

import keras_arch as ka
from tests.contracts.tiny import CONFIGS, CONTEXT, V, build

CHARACTERS = "abcdefghijklmnopqrstuvwxyz .\né"
TEXTS = ["the cat", "", "a", "né 中 x"]
ASK = """
import json, sys
import tensorflow as tf
import tensorflow_text
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
answers = []
for texts in json.loads(sys.argv[2]):
    answer = serve(text=tf.constant(texts, tf.string, [len(texts)]))["text"]
    answers.append([text.decode() for text in answer.numpy()])
assert not {"keras", "keras_arch", "keras_nlp"} & {m for m in sys.modules if m in sys.argv[3:]}
print(json.dumps(answers))
"""

tensorflow_only = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="SavedModels are written from TensorFlow"
)


@pytest.fixture(scope="module")
def tokenizer():
    tokenizer = ka.text.CharacterTokenizer(CHARACTERS)
    assert tokenizer.vocabulary_size == V
    return tokenizer


def ask(folder, *batches):
    """Asks an export in a process that knows TensorFlow only."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(folder), json.dumps(batches), "keras_arch", "keras_nlp"],
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@tensorflow_only
@pytest.mark.parametrize("label", CONFIGS)
def test_a_moved_export_answers_as_the_model_does(label, tokenizer, tmp_path):
    model = build(CONFIGS[label])
    start = tokenizer.encode("\n")[0]
    stop = tokenizer.encode("e")
    options = {"max_new_tokens": 9, "stop_ids": stop, "bos_id": start}
    path = ka.serving.export(model, tmp_path / "here", tokenizer, **options)
    assert path == tmp_path / "here" / "1"
    (tmp_path / "here").rename(tmp_path / "there")
    answers = ask(tmp_path / "there" / "1", TEXTS, ["b"], [])
    for texts, answer in zip((TEXTS, ["b"], []), answers, strict=True):
        expected = ka.generate(model, texts, tokenizer=tokenizer, **options).texts
        assert answer == expected


@tensorflow_only
def test_a_sampler_draws_anew_at_each_call(tokenizer, tmp_path):
    sampler = ka.generation.Sample(ka.generation.Temperature(1.0), ka.generation.TopK(20))
    model = build(CONFIGS["gpt2"], scale=0.1)
    ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=12, sampler=sampler)
    first, second = ask(tmp_path / "1", ["abc"], ["abc"])
    assert first != second


@tensorflow_only
def test_prompts_that_cannot_be_answered_are_errors(tokenizer, tmp_path):
    import tensorflow as tf

    path = ka.serving.export(build(CONFIGS["gpt2"]), tmp_path, tokenizer, max_new_tokens=9)
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"context of {CONTEXT} tokens"):
        serve(text=tf.constant(["a" * (CONTEXT - 9 + 1)]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="empty text"):
        serve(text=tf.constant(["a", ""]))
    assert len(serve(text=tf.constant(["a" * (CONTEXT - 9)]))["text"].numpy()[0]) >= 9


@tensorflow_only
def test_no_python_is_called_from_the_graph(tokenizer, tmp_path):
    from tensorflow.core.protobuf import saved_model_pb2

    path = ka.serving.export(build(CONFIGS["llama"]), tmp_path, tokenizer, max_new_tokens=9)
    saved = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    graph = saved.meta_graphs[0].graph_def
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    operations = {node.op for node in nodes}
    assert "While" in operations or "StatelessWhile" in operations
    assert not {op for op in operations if "PyFunc" in op}


@tensorflow_only
def test_bad_arguments_are_named(tokenizer, tmp_path):
    model = build(CONFIGS["gpt2"])
    with pytest.raises(ValueError, match=f"max_new_tokens=24, context_length={CONTEXT}"):
        ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=24)
    with pytest.raises(ValueError, match="version=0"):
        ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=4, version=0)
    ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=4)
    with pytest.raises(FileExistsError, match=r"version 1 exists.*version="):
        ka.serving.export(model, tmp_path, tokenizer, max_new_tokens=4)
    assert [path.name for path in Path(tmp_path).iterdir()] == ["1"]


@pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="this is its backend")
def test_other_backends_are_told_what_to_do(tokenizer, tmp_path):
    with pytest.raises(RuntimeError, match="KERAS_BACKEND=tensorflow"):
        ka.serving.export(build(CONFIGS["gpt2"]), tmp_path, tokenizer)
    assert not list(tmp_path.iterdir())
