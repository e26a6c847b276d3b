"""keras_arch: sequence-model architectures for Keras 3.

Layers are classes, models are functions, decoding is derived from the model's own graph.
"""

import importlib

from keras_arch import analysis, checkpoints, generation, layers, models, objectives
from keras_arch.generation.fill_mask import fill_mask
from keras_arch.generation.generate import generate
from keras_arch.generation.score import score

__version__ = "0.1.0"

# These need TensorFlow, so they are imported when first asked for.
_ON_DEMAND = ("serving", "text", "training")


def __getattr__(name):
    if name in _ON_DEMAND:
        return importlib.import_module(f"keras_arch.{name}")
    raise AttributeError(f"module 'keras_arch' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_ON_DEMAND])
