"""Asks SavedModels in a process that knows TensorFlow and tensorflow_text only.

    python client.py < requests.json

Reads a list of `[folder, requests]`, each request `[signature, {input: nested list}]`; prints the
list of the folders' lists of answers.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "ask_saved_model.py"


def ask(folder, *requests):
    """Returns the answers to requests `(signature, {input: nested list})`."""
    (answers,) = ask_all((folder, requests))
    return answers


def ask_all(*asked):
    """Returns the lists of answers to `(folder, requests)`, by one process."""
    done = subprocess.run(
        [sys.executable, "-P", __file__],
        input=json.dumps([(str(folder), requests) for folder, requests in asked]),
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def ask_by_c(folder, *arguments):
    """Returns the rows that the C API answers."""
    done = subprocess.run(
        [sys.executable, str(TOOL), str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def answer(signatures, name, inputs):
    """Returns the outputs of a signature as nested lists."""
    import tensorflow as tf

    signature = signatures[name]
    specs = signature.structured_input_signature[1]
    tensors = {key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()}
    outputs = signature(**tensors)
    return {key: listed(output.numpy()) for key, output in outputs.items()}


def listed(array):
    """Returns an array as nested lists, bytes as text."""
    if array.dtype == object:
        return [text.decode() if isinstance(text, bytes) else listed(text) for text in array]
    return array.tolist()


def main():
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 (registers its operations)

    answers = []
    for folder, requests in json.load(sys.stdin):
        signatures = tf.saved_model.load(folder).signatures
        answers.append([answer(signatures, *request) for request in requests])
    assert not {"keras_arch", "keras_nlp", "keras_hub"} & {*sys.modules}
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
