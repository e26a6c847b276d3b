"""Dropout on PyTorch that a resumed training repeats."""

import keras


class ReseedTorch(keras.callbacks.Callback):
    """Seeds PyTorch's global generator by seed and step at the start of each evaluation interval.

    On PyTorch a Keras dropout layer without a seed of its own draws from that generator and not
    from the layer's seed state, so no weight file holds it. It is seeded at the first batch,
    because making the data iterator draws from it as well. The seed is the one given to
    `keras.utils.set_random_seed`.

    Args:
        progress: the Progress that knows the step.
    """

    def __init__(self, progress):
        super().__init__()
        self.progress = progress

    def on_train_begin(self, logs=None):
        import torch

        self.seed = torch.initial_seed()

    def on_train_batch_begin(self, batch, logs=None):
        import torch

        if batch == 0:
            torch.manual_seed((self.seed + 1_000_003 * self.progress.step) % (1 << 63))
