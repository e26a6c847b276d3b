"""The character LSTM with attention that the package textgenrnn 2.0.0 ships.

pip install --no-deps textgenrnn==2.0.0 "tf-keras==2.21.*"
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.layers import LSTM, MultiplicativeAttention, TokenEmbedding
from keras_arch.layers.recurrent_weights import from_cudnn

#: The package's own model, on the Keras it was written for; its `__init__` asks for much more.
ORIGINAL = """
import os, sys, types
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
folder, inputs, outputs = sys.argv[1:]
package = types.ModuleType("textgenrnn")
package.__path__ = [folder]
sys.modules["textgenrnn"] = package
import tensorflow as tf
from textgenrnn.model import textgenrnn_model
sizes = {"rnn_layers": 2, "rnn_size": 128, "rnn_bidirectional": False}
sizes |= {"max_length": 40, "dim_embeddings": 100}
weights = f"{folder}/textgenrnn_weights.hdf5"
found = []
for numbers in ("float32", "float64"):
    tf.keras.backend.set_floatx(numbers)
    model = textgenrnn_model(465, sizes, weights_path=weights)
    found.append(model.predict(np.load(inputs), verbose=0))
np.save(outputs, np.stack(found))
"""


@pytest.fixture(scope="module")
def package():
    """The package's folder."""
    for name in ("textgenrnn", "tf_keras"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    return Path(importlib.util.find_spec("textgenrnn").origin).parent


def build(weights):
    """The same model of our layers, all of its 40 places real."""
    token_ids = keras.Input((40,), dtype="int32", name="token_ids")
    valid = ops.ones_like(token_ids, dtype="bool")
    embedding = TokenEmbedding(*weights["embedding/embeddings"].shape, name="embedding")
    x = [embedding(token_ids)]
    lstms = [LSTM(128, name=f"rnn_{i}") for i in (1, 2)]
    for lstm in lstms:
        x.append(lstm(x[-1], valid))
    memory = ops.concatenate(x, axis=-1)
    # It attends by one query, whatever the text.
    query = TokenEmbedding(1, memory.shape[-1], name="query")
    places = query(ops.zeros_like(token_ids[:, :1]))
    context = MultiplicativeAttention(general=False)(places, memory, valid)
    head = keras.layers.Dense(465, activation="softmax")
    model = keras.Model(token_ids, head(context[:, 0]))
    embedding.set_weights([weights["embedding/embeddings"]])
    query.set_weights([weights["attention/attention_W"].T])
    head.set_weights([weights["output/kernel"], weights["output/bias"]])
    for lstm in lstms:
        names = ("kernel", "recurrent_kernel", "bias")
        arrays = [weights[f"{lstm.name}/{name}"] for name in names]
        lstm.set_weights(from_cudnn("lstm", arrays))
    return model


def read_weights(path):
    """Returns the arrays of an HDF5 file of weights, by "layer/weight"."""
    weights = {}

    def add(name, item):
        if isinstance(item, h5py.Dataset):
            weights[name.split("/", 1)[1].removesuffix(":0")] = item[()]

    with h5py.File(path) as file:
        file.visititems(add)
    return weights


def test_probabilities_equal_the_original(package, tmp_path):
    token_ids = np.random.default_rng(0).integers(0, 465, (4, 40)).astype("int32")
    token_ids[0, :30] = 0  # its pads, which it reads as any other token
    np.save(tmp_path / "inputs.npy", token_ids)
    arguments = [str(package), str(tmp_path / "inputs.npy"), str(tmp_path / "outputs.npy")]
    subprocess.run(
        [sys.executable, "-c", ORIGINAL, *arguments],
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        check=True,
        timeout=300,
    )
    single, double = np.load(tmp_path / "outputs.npy")
    model = build(read_weights(package / "textgenrnn_weights.hdf5"))
    found = model.predict(token_ids, verbose=0)
    # As near to the exact values as its own float32 comes, within a factor of two.
    own = abs(single - double).max()
    assert own < 2e-4
    np.testing.assert_allclose(found, double, rtol=0, atol=2 * own)
    np.testing.assert_array_equal(found.argmax(axis=-1), double.argmax(axis=-1))
    assert double.max(axis=-1).min() > 0.1
