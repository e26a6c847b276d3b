import keras
import pytest

import keras_arch as ka
from keras_arch.serving.operations import TEXT
from tests.contracts.tiny import CONFIGS, V, build

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="SavedModels are written from TensorFlow"
)


def save(function, folder):
    """Writes a SavedModel with one function of a float vector."""
    import tensorflow as tf

    module = tf.Module()
    spec = tf.TensorSpec([None], tf.float32, name="x")
    module.function = tf.function(function, input_signature=[spec], autograph=False)
    tf.saved_model.save(module, folder, signatures={"serving_default": module.function})
    return folder


def test_operations_inside_functions_are_listed(tmp_path):
    import tensorflow as tf

    def loop(x):
        return tf.while_loop(lambda x: tf.reduce_sum(x) < 9.0, lambda x: (tf.math.cosh(x),), (x,))

    found = ka.serving.operations(save(lambda x: {"y": loop(x)[0]}, tmp_path))
    assert {"StatelessWhile", "Cosh", "Sum", "Less", "Placeholder", "SaveV2", "RestoreV2"} <= found
    assert not [name for name in found if name.startswith("__")]
    assert ka.serving.foreign_operations(tmp_path) == []


def test_calls_into_python_are_foreign(tmp_path):
    import tensorflow as tf

    save(lambda x: {"y": tf.numpy_function(lambda x: x, [x], tf.float32)}, tmp_path)
    assert ka.serving.foreign_operations(tmp_path) == ["PyFunc"]


def test_operations_for_a_compiler_are_foreign(tmp_path):
    save(lambda x: {"y": keras.ops.slice_update(x, (0,), x[:1])}, tmp_path)
    assert ka.serving.foreign_operations(tmp_path) == ["XlaDynamicUpdateSlice"]


def test_those_of_tensorflow_text_are_not(tmp_path):
    import tensorflow as tf
    import tensorflow_text

    words = tensorflow_text.WhitespaceTokenizer()
    save(lambda x: {"y": words.tokenize(tf.strings.as_string(x)).to_tensor()}, tmp_path)
    assert ka.serving.operations(tmp_path) & TEXT
    assert ka.serving.foreign_operations(tmp_path) == []


class Pythonic(ka.text.CharacterTokenizer):
    """A tokenizer that decodes in Python, which no server has."""

    def decode_tensor(self, ids):
        import tensorflow as tf

        return tf.numpy_function(lambda ids: b"", [ids.to_tensor()], tf.string)[None]


def test_no_folder_is_left_with_a_foreign_operation(tmp_path):
    tokenizer = Pythonic("abcdefghijklmnopqrstuvwxyz .\né")
    assert tokenizer.vocabulary_size == V
    with pytest.raises(ValueError, match=r"PyFunc.*servers may lack"):
        ka.serving.export(build(CONFIGS["gpt2"]), tmp_path / "m", tokenizer, max_new_tokens=4)
    assert not list((tmp_path / "m").iterdir())
