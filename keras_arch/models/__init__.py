"""Models: functions from a config to a plain functional `keras.Model`."""

from keras_arch.models.adapters import add_adapters
from keras_arch.models.attention_seq2seq import AttentionSeq2SeqConfig, attention_seq2seq
from keras_arch.models.bart import BARTConfig, bart
from keras_arch.models.bert import BERTConfig, bert
from keras_arch.models.catalog import SIZES, builder, catalog
from keras_arch.models.distilbert import DistilBERTConfig, distilbert
from keras_arch.models.electra import ELECTRAConfig, electra
from keras_arch.models.electra_pretraining import electra_pretraining
from keras_arch.models.encoder_heads import (
    next_sentence,
    replaced_tokens,
    sequence_classification,
    span_answers,
    token_classification,
    token_vectors,
    with_pooler,
)
from keras_arch.models.freezing import freeze, load_trained, save_trained
from keras_arch.models.gpt2 import GPT2Config, gpt2
from keras_arch.models.layout import layout_map
from keras_arch.models.llama import LlamaConfig, llama
from keras_arch.models.low_rank import add_lora, merge_lora
from keras_arch.models.marian import MarianConfig, marian
from keras_arch.models.masked_lm import bert_pretraining, masked_lm
from keras_arch.models.multiple_choice import multiple_choice
from keras_arch.models.ngram import NGramConfig, ngram
from keras_arch.models.outline import outline
from keras_arch.models.recurrent_lm import (
    GRULMConfig,
    LSTMLMConfig,
    RNNLMConfig,
    gru_lm,
    lstm_lm,
    rnn_lm,
)
from keras_arch.models.roberta import RoBERTaConfig, roberta
from keras_arch.models.sentence_embedding import pair_similarity, sentence_embedding
from keras_arch.models.seq2seq import Seq2SeqConfig, seq2seq
from keras_arch.models.t5 import T5Config, t5
from keras_arch.models.transformer import TransformerConfig, transformer
