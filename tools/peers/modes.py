"""The modes of Keras's peers."""

import keras


def jit_compile(mode):
    """Returns the argument of `compile`: by XLA, unless the mode is "no XLA".

    Keras's own choice on JAX and on PyTorch, where True would be `torch.compile`, whose first step
    takes minutes.
    """
    return "auto" if keras.backend.backend() != "tensorflow" else mode != "no XLA"
