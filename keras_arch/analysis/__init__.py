"""Analysis: what a model costs and what it has learned."""

from keras_arch.analysis.parameters import count_parameters
