"""Training objectives: targets, losses and metrics."""

from keras_arch.objectives.crossentropy import TokenCrossentropy
from keras_arch.objectives.metrics import BitsPerCharacter, Perplexity, TokenNats
from keras_arch.objectives.next_token import next_token
from keras_arch.objectives.packing import Packed, pack
