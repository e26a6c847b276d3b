"""Models: functions from a config to a plain functional `keras.Model`."""

from keras_arch.models.catalog import SIZES, builder, catalog
from keras_arch.models.gpt2 import GPT2Config, gpt2
from keras_arch.models.llama import LlamaConfig, llama
from keras_arch.models.ngram import NGramConfig, ngram
