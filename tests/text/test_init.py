"""What importing the package does not do."""

import subprocess
import sys

import keras
import pytest

from keras_arch import text

WITHOUT_TENSORFLOW = """
import sys
import keras_arch.text
characters = keras_arch.text.CharacterTokenizer.from_text("abc")
assert characters.decode(characters.encode("cab")) == "cab"
byte_pair = keras_arch.text.BytePairTokenizer.train(["abc"], 258)
assert byte_pair.decode(byte_pair.encode("cab")) == "cab"
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
