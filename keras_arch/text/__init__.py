"""Tokenizers, corpora and `tf.data` pipelines.

TensorFlow and tensorflow_text are imported by what needs them: the pipelines, and the tokenizers'
`_tensor` methods.
"""

import importlib

from keras_arch.text.byte_pair import BytePairTokenizer
from keras_arch.text.bytes import ByteTokenizer
from keras_arch.text.characters import CharacterTokenizer
from keras_arch.text.code_points import UnicodeTokenizer
from keras_arch.text.data import find_corpus
from keras_arch.text.files import read_text
from keras_arch.text.load import TRAINABLE, load_tokenizer
from keras_arch.text.marian import MarianTokenizer
from keras_arch.text.pair_draws import mixed_pairs, task_pairs, window_pairs
from keras_arch.text.pairs import Pairs, find_pairs
from keras_arch.text.read import read_tokenizer
from keras_arch.text.sentence_piece import SentencePieceTokenizer
from keras_arch.text.tabbed_pairs import find_tabbed_pairs
from keras_arch.text.tokenizer import Tokenizer
from keras_arch.text.word_piece import WordPieceTokenizer

#: Name -> module; they import TensorFlow.
_PIPELINES = {
    "PairBatches": "pair_batches",
    "consecutive_windows": "pipeline",
    "contiguous_rows": "contiguous",
    "pair_stream": "pair_streams",
    "split": "pipeline",
    "stream": "pipeline",
    "windows": "pipeline",
}


def __getattr__(name):
    if name in _PIPELINES:
        return getattr(importlib.import_module(f"keras_arch.text.{_PIPELINES[name]}"), name)
    raise AttributeError(f"module 'keras_arch.text' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_PIPELINES])
