"""Analysis: what a model costs and what it has learned."""

from keras_arch.analysis.attention_maps import attention_weights, plot_alignment
from keras_arch.analysis.kneser_ney import KneserNey
from keras_arch.analysis.parameters import count_parameters
from keras_arch.analysis.plan import plan
from keras_arch.analysis.scaling_law import FittedLaw, ScalingLaw, fit_scaling_law
from keras_arch.analysis.training_plan import Plan
