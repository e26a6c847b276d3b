"""Generation: decoding derived from the model's own graph."""

from keras_arch.generation.contrastive import generate_contrastive
from keras_arch.generation.filters import (
    MinimumLength,
    MinP,
    NoRepeatNGram,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
)
from keras_arch.generation.generate import Generation, generate
from keras_arch.generation.samplers import Greedy, Sample
from keras_arch.generation.score import Score, score
from keras_arch.generation.speculative import SpeculativeGeneration, generate_speculative
from keras_arch.generation.stepper import Stepper
