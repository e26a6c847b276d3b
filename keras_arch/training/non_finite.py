"""A loss that is no number any more: which batch it was, and where to go on from."""

import hashlib

import numpy as np


class NonFiniteLossError(ArithmeticError):
    """The training or the validation loss became NaN or infinite."""


def batch_digest(batch):
    """Returns the SHA-256 of a batch's rows, hexadecimal.

    Args:
        batch: Nested structure of tensors; of its arrays count type, shape and content.
    """
    import tensorflow as tf

    found = hashlib.sha256()
    for tensor in tf.nest.flatten(batch, expand_composites=True):
        array = np.ascontiguousarray(tensor)
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def batch_digests(dataset, start, count):
    """Returns the digests of some batches of a dataset, from number `start` on.

    None of a distributed dataset, which all workers of a cluster can only read together.
    """
    import tensorflow as tf

    if not isinstance(dataset, tf.data.Dataset):
        return []
    return [batch_digest(batch) for batch in dataset.skip(start).take(count)]


def spoiled_training(loss, epoch, steps, batches, digests, where):
    """Returns the error of a training loss.

    Args:
        loss: What it became.
        epoch: Number of the evaluation interval, from 1.
        steps: Numbers of the first and the last update that it may have been, from 1.
        batches: The same of the interval's batches.
        digests: The digest of each of these batches, or none.
        where: What `last_checkpoint` returned.
    """
    rows = f" Rows by their SHA-256: {', '.join(digests)}." if digests else ""
    return NonFiniteLossError(
        f"the training loss became {loss} in {_range('step', 'steps', steps)}, "
        f"{_range('batch', 'batches', batches)} of epoch {epoch}.{rows} Usual causes: labels "
        "outside the vocabulary, a learning rate too high, gradients not clipped, float16. "
        f"{where}"
    )


def spoiled_weights(loss, step, where):
    """Returns the error of a validation loss: an update of the interval spoiled the weights."""
    return NonFiniteLossError(
        f"the validation loss became {loss} after step {step}, though the training loss had not: "
        "the last updates spoiled the weights, which are not saved. Usual causes: a learning rate "
        f"too high, gradients not clipped, float16. {where}"
    )


def last_checkpoint(checkpoints, step):
    """Returns the sentence that says from where to go on.

    Args:
        checkpoints: Checkpoints, or None.
        step: Updates at the last one; 0: there is none.
    """
    if checkpoints is None or not step:
        return "There is no checkpoint before it."
    return f"The last good checkpoint, after step {step}, is {checkpoints.path(step)}."


def _range(noun, nouns, numbers):
    first, last = numbers
    return f"{noun} {first}" if first == last else f"one of the {nouns} {first} to {last}"
