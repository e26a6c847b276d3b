"""The GRU encoder-decoder that the package g2p-en 2.1.0 ships: letters in, phonemes out.

pip install --no-deps g2p-en==2.1.0
"""

import importlib
import importlib.util
import sys
import unittest.mock
import warnings

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.layers import GRU, CausalLMHead, TokenEmbedding
from keras_arch.layers.recurrent_weights import from_torch

WORDS = ["activationist", "keras", "schadenfreude", "gpt", "o", "xylophonics", "na\u00efve"]
START, END = 2, 3


@pytest.fixture(scope="module")
def original():
    """The package's own `G2p`, by numpy; what it asks of nltk is not needed for one word."""
    if importlib.util.find_spec("g2p_en") is None:
        pytest.skip("g2p-en is not installed")
    names = ("nltk", "nltk.corpus", "nltk.tokenize", "inflect")
    stubs = {name: unittest.mock.MagicMock() for name in names}
    with unittest.mock.patch.dict(sys.modules, stubs), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("g2p_en.g2p").G2p()


def build(weights):
    """The same model of our layers."""
    source_ids = keras.Input((None,), dtype="int32", name="source_ids")
    source_valid = keras.Input((None,), dtype="bool", name="source_valid")
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    valid = keras.Input((None,), dtype="bool", name="valid")
    width = weights["enc_w_hh"].shape[1]
    embeddings = {
        side: TokenEmbedding(*weights[f"{side}_emb"].shape, name=f"{side}_emb")
        for side in ("enc", "dec")
    }
    encoder, decoder = GRU(width, return_state=True, name="enc"), GRU(width, name="dec")
    _, last = encoder(embeddings["enc"](source_ids), source_valid)
    h = decoder(embeddings["dec"](token_ids), valid, initial_state=[last])
    head = CausalLMHead(len(weights["fc_b"]), use_bias=True, name="head")
    model = keras.Model([source_ids, source_valid, token_ids, valid], head(h))
    for layer in (encoder, decoder):
        names = ("w_ih", "w_hh", "b_ih", "b_hh")
        arrays = [weights[f"{layer.name}_{name}"] for name in names]
        layer.set_weights(from_torch("gru", arrays))
        embeddings[layer.name].set_weights([weights[f"{layer.name}_emb"]])
    head.set_weights([weights["fc_w"].T, weights["fc_b"]])
    return model


def test_phonemes_equal_the_original(original):
    model = build(dict(original.variables))
    end = original.g2idx["</s>"]
    letters = [[original.g2idx.get(c, original.g2idx["<unk>"]) for c in word] for word in WORDS]
    generated = ka.generate(
        model,
        [[START]] * len(WORDS),
        max_new_tokens=20,
        stop_ids=[END],
        context={"source_ids": [[*row, end] for row in letters]},
    )
    for word, ids, valid in zip(WORDS, generated.token_ids, generated.valid, strict=True):
        phonemes = [original.idx2p[i] for i in ids[valid].tolist() if i != END]
        assert phonemes == original.predict(word), word
    assert np.any(generated.valid)
