"""What importing the package does not do."""

import subprocess
import sys

import keras
import pytest

from keras_arch import text

WITHOUT_TENSORFLOW = """
import sys
import keras_arch.text
text = keras_arch.text
characters = text.CharacterTokenizer.from_text("abc")
tokenizers = [characters, text.ByteTokenizer(), text.UnicodeTokenizer()]
tokenizers += [tokenizer.train(["abc cab"], 300) for tokenizer in text.TRAINABLE.values()]
for tokenizer in tokenizers:
    assert tokenizer.decode(tokenizer.encode("cab", parse_special=True)) == "cab", tokenizer
imported = sys.modules.keys() & {"tensorflow", "tensorflow_text", "keras_nlp", "keras_hub"}
assert not imported, imported
"""


@pytest.mark.skipif(
    keras.config.backend() == "tensorflow", reason="Keras itself imports TensorFlow there."
)
def test_encoding_in_python_does_not_import_tensorflow():
    command = [sys.executable, "-c", WITHOUT_TENSORFLOW]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


def test_the_pipelines_are_public():
    assert callable(text.windows)
    assert {"windows", "consecutive_windows", "stream", "split", "Tokenizer"} <= set(dir(text))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'window'"):
        text.window  # noqa: B018
