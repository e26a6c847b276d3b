"""Layers: one concept a file, written with `keras.ops` only."""

from keras_arch.layers.activations import gelu_tanh, get_activation
from keras_arch.layers.adapter import Adapter
from keras_arch.layers.add_bias import AddBias
from keras_arch.layers.additive_attention import AdditiveAttention
from keras_arch.layers.attention_decoder import AttentionDecoder
from keras_arch.layers.bahdanau_decoder import BahdanauDecoder
from keras_arch.layers.context_attention import ContextAttention
from keras_arch.layers.cross_attention import CrossAttention
from keras_arch.layers.cross_decoder_block import CrossDecoderBlock
from keras_arch.layers.decoder_block import DecoderBlock, ParallelBlock
from keras_arch.layers.dropout import Dropout
from keras_arch.layers.elman import ElmanRNN
from keras_arch.layers.embedding import TokenEmbedding
from keras_arch.layers.encoder_block import EncoderBlock
from keras_arch.layers.feedforward import FeedForward, GatedFeedForward
from keras_arch.layers.fixed_window import FixedWindow
from keras_arch.layers.fold_choices import FoldChoices
from keras_arch.layers.gru import GRU
from keras_arch.layers.heads import CausalLMHead
from keras_arch.layers.location_attention import LocationAttention
from keras_arch.layers.lstm import LSTM
from keras_arch.layers.luong_decoder import LuongDecoder
from keras_arch.layers.multiplicative_attention import LocalAttention, MultiplicativeAttention
from keras_arch.layers.norms import LayerNorm, RMSNorm
from keras_arch.layers.part import Part
from keras_arch.layers.pooling import FirstToken, MaxTokens, MeanTokens
from keras_arch.layers.positions import LearnedPositions, SinusoidalPositions, TokenPositions
from keras_arch.layers.put_tokens import PutTokens
from keras_arch.layers.relative_bias import AlibiBias, RelativeBias, relative_bucket
from keras_arch.layers.residual import PostNorm, PreNorm, Residual, SandwichNorm
from keras_arch.layers.rotary import Rotary
from keras_arch.layers.rotary_scaling import (
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    YarnScaling,
)
from keras_arch.layers.sample_tokens import SampleTokens
from keras_arch.layers.self_attention import SelfAttention
from keras_arch.layers.span_scores import SpanScores
from keras_arch.layers.take_tokens import TakeTokens
