"""Generation: decoding derived from the model's own graph."""

from keras_arch.generation.generate import Generation, generate
from keras_arch.generation.samplers import Greedy, Sample, Temperature, TopK, TopP
from keras_arch.generation.stepper import Stepper
