"""Every model, by name."""

from keras_arch.models.attention_seq2seq import AttentionSeq2SeqConfig, attention_seq2seq
from keras_arch.models.bart import SIZES as BART_SIZES
from keras_arch.models.bart import BARTConfig, bart
from keras_arch.models.bert import SIZES as BERT_SIZES
from keras_arch.models.bert import BERTConfig, bert
from keras_arch.models.distilbert import SIZES as DISTILBERT_SIZES
from keras_arch.models.distilbert import DistilBERTConfig, distilbert
from keras_arch.models.electra import SIZES as ELECTRA_SIZES
from keras_arch.models.electra import ELECTRAConfig, electra
from keras_arch.models.gpt2 import SIZES as GPT2_SIZES
from keras_arch.models.gpt2 import GPT2Config, gpt2
from keras_arch.models.llama import SIZES as LLAMA_SIZES
from keras_arch.models.llama import LlamaConfig, llama
from keras_arch.models.marian import SIZES as MARIAN_SIZES
from keras_arch.models.marian import MarianConfig, marian
from keras_arch.models.ngram import NGramConfig, ngram
from keras_arch.models.recurrent_lm import (
    GRULMConfig,
    LSTMLMConfig,
    RNNLMConfig,
    gru_lm,
    lstm_lm,
    rnn_lm,
)
from keras_arch.models.roberta import SIZES as ROBERTA_SIZES
from keras_arch.models.roberta import RoBERTaConfig, roberta
from keras_arch.models.seq2seq import Seq2SeqConfig, seq2seq
from keras_arch.models.t5 import SIZES as T5_SIZES
from keras_arch.models.t5 import T5Config, t5
from keras_arch.models.transformer import SIZES as TRANSFORMER_SIZES
from keras_arch.models.transformer import TransformerConfig, transformer

#: Name -> (config class, builder).
catalog = {
    "gpt2": (GPT2Config, gpt2),
    "llama": (LlamaConfig, llama),
    "ngram": (NGramConfig, ngram),
    "rnn_lm": (RNNLMConfig, rnn_lm),
    "lstm_lm": (LSTMLMConfig, lstm_lm),
    "gru_lm": (GRULMConfig, gru_lm),
    "seq2seq": (Seq2SeqConfig, seq2seq),
    "attention_seq2seq": (AttentionSeq2SeqConfig, attention_seq2seq),
    "transformer": (TransformerConfig, transformer),
    "t5": (T5Config, t5),
    "bart": (BARTConfig, bart),
    "marian": (MarianConfig, marian),
    "bert": (BERTConfig, bert),
    "roberta": (RoBERTaConfig, roberta),
    "distilbert": (DistilBERTConfig, distilbert),
    "electra": (ELECTRAConfig, electra),
}

#: Name -> size -> config, as published.
SIZES = {
    "gpt2": GPT2_SIZES,
    "llama": LLAMA_SIZES,
    "transformer": TRANSFORMER_SIZES,
    "t5": T5_SIZES,
    "bart": BART_SIZES,
    "marian": MARIAN_SIZES,
    "bert": BERT_SIZES,
    "roberta": ROBERTA_SIZES,
    "distilbert": DISTILBERT_SIZES,
    "electra": ELECTRA_SIZES,
}


def builder(config):
    """Returns the function that builds the model of a config.

    Raises:
        ValueError: If no model in the catalog has this kind of config.
    """
    for config_class, build in catalog.values():
        if type(config) is config_class:
            return build
    kinds = ", ".join(config_class.__name__ for config_class, _ in catalog.values())
    raise ValueError(f"config must be one of {kinds}; received config={config!r}.")
