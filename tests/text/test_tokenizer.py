"""What every tokenizer must do."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_arch.text import load_tokenizer
from tests.text.texts import DIFFICULT, TEXTS


def test_decode_undoes_encode(tokenizer):
    assert [tokenizer.decode(tokenizer.encode(text)) for text in TEXTS] == TEXTS


def test_ids_lie_in_the_vocabulary(tokenizer):
    ids = {token for text in [*TEXTS, "\u10ff never seen"] for token in tokenizer.encode(text)}
    assert min(ids) >= 0
    assert max(ids) < tokenizer.vocabulary_size
    assert all(0 <= token < tokenizer.vocabulary_size for token in tokenizer.special_ids.values())


def test_no_text_gives_a_special_id_of_a_known_text(tokenizer):
    ids = {token for text in TEXTS for token in tokenizer.encode(text)}
    assert ids.isdisjoint(tokenizer.special_ids.values())


def test_empty_text_has_no_tokens(tokenizer):
    assert tokenizer.encode("") == []
    assert tokenizer.decode([]) == ""


def test_the_graph_gives_the_ids_of_python(tokenizer):
    ids = tf.function(tokenizer.encode_tensor)(tf.constant(TEXTS))
    assert ids.dtype == tf.int32
    assert ids.to_list() == [tokenizer.encode(text) for text in TEXTS]


def test_the_graph_gives_the_text_of_python(tokenizer):
    ids = tf.ragged.constant([tokenizer.encode(text) for text in TEXTS], tf.int32)
    texts = tf.function(tokenizer.decode_tensor)(ids)
    assert [text.decode() for text in texts.numpy()] == TEXTS


def test_the_graph_decodes_dense_ids(tokenizer):
    ids = np.random.default_rng(0).integers(tokenizer.vocabulary_size, size=(20, 7))
    texts = tokenizer.decode_tensor(tf.constant(ids, tf.int32)).numpy()
    assert [text.decode() for text in texts] == [tokenizer.decode(row) for row in ids]


def test_the_graph_works_in_a_dataset(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices(list(DIFFICULT)).batch(4)
    batches = list(dataset.map(tokenizer.encode_tensor))
    ids = [row for batch in batches for row in batch.to_list()]
    assert ids == [tokenizer.encode(text) for text in DIFFICULT]


def test_the_graph_takes_empty_texts_and_batches(tokenizer):
    for texts in ([], [""], ["", ""], ["", "a", ""]):
        ids = tokenizer.encode_tensor(tf.constant(texts, tf.string))
        assert ids.to_list() == [tokenizer.encode(text) for text in texts]
        assert [text.decode() for text in tokenizer.decode_tensor(ids).numpy()] == texts


def test_the_graph_reads_broken_utf8_as_replacement_characters(tokenizer):
    broken = [b"a\xffb", b"\xc3", b"\xed\xa0\x80"[:1] + b" a"]
    replaced = ["a\ufffdb", "\ufffd", "\ufffd a"]
    ids = tokenizer.encode_tensor(tf.constant(broken)).to_list()
    assert ids == [tokenizer.encode(text) for text in replaced]


@pytest.mark.parametrize("outside", [-1, 10**6])
def test_ids_outside_the_vocabulary_are_refused(tokenizer, outside):
    with pytest.raises(ValueError, match=rf"received ids\[1\]={outside}"):
        tokenizer.decode([1, outside])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tokenizer.decode_tensor(tf.constant([[1, outside]]))


def test_a_saved_tokenizer_comes_back(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "new" / "tokenizer")
    loaded = load_tokenizer(tmp_path / "new" / "tokenizer")
    assert type(loaded) is type(tokenizer)
    assert loaded.vocabulary_size == tokenizer.vocabulary_size
    assert loaded.special_ids == tokenizer.special_ids
    assert [loaded.encode(text) for text in TEXTS] == [tokenizer.encode(text) for text in TEXTS]


FRESH_PROCESS = """
import json, sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
texts = json.load(sys.stdin)
result = {}
for name in ("characters", "byte_pair"):
    encode = getattr(model, name + "_encode")
    ids = encode(tf.constant(texts))
    assert encode(tf.constant(texts[-1:])).to_list() == ids.to_list()[-1:]
    decoded = getattr(model, name + "_decode")(ids)
    result[name] = [ids.to_list(), [text.decode() for text in decoded.numpy()]]
assert not {"keras_arch", "keras_nlp", "keras_hub"} & sys.modules.keys()
json.dump(result, sys.stdout)
"""


def test_a_saved_model_carries_the_tokenizers(characters, byte_pair, tmp_path):
    texts_spec = [tf.TensorSpec([None], tf.string)]
    ids_spec = [tf.RaggedTensorSpec([None, None], tf.int32)]
    module = tf.Module()
    for name, tokenizer in (("characters", characters), ("byte_pair", byte_pair)):
        encode = tf.function(tokenizer.encode_tensor, input_signature=texts_spec)
        decode = tf.function(tokenizer.decode_tensor, input_signature=ids_spec)
        setattr(module, f"{name}_encode", encode)
        setattr(module, f"{name}_decode", decode)
        setattr(module, f"{name}_resources", tokenizer.resources)
    tf.saved_model.save(module, str(tmp_path))

    # Backwards, because keras_nlp remembers the words that it has seen and exports them, too.
    texts = [text[::-1] for text in DIFFICULT]
    process = subprocess.run(
        [sys.executable, "-c", FRESH_PROCESS, str(tmp_path)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout)
    assert result["characters"] == [[characters.encode(text) for text in texts], texts]
    assert result["byte_pair"] == [[byte_pair.encode(text) for text in texts], texts]
