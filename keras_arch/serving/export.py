"""A SavedModel that takes text and returns text, with tokenizer and cached decode loop inside."""

import os
import shutil
from pathlib import Path

import keras
import tensorflow as tf

from keras_arch.checks import check_positive
from keras_arch.generation.decode import decode
from keras_arch.generation.prompts import check_request
from keras_arch.generation.samplers import Greedy
from keras_arch.generation.stepper import Stepper


def export(
    model, path, tokenizer, max_new_tokens=128, sampler=None, stop_ids=(), bos_id=None, version=1
):
    """Writes the model folder `path/version/` that TensorFlow Serving loads.

    Its signature `serving_default` takes `text`, a batch of strings `[None]` of any lengths, and
    returns `text`, what the model continues each with (`ka.generate(...).texts`). Everything in it
    is TensorFlow: the process that serves it needs neither keras_arch nor Keras. A prompt that is
    too long for the context, or empty without a `bos_id`, is answered with an error.

    Args:
        model: A functional model; see `keras_arch.generation.Stepper`.
        path: The model folder.
        tokenizer: A tokenizer of `keras_arch.text`.
        max_new_tokens: Most tokens to generate.
        sampler: `Greedy()` (default) or a `Sample`, which draws anew at each call.
        stop_ids: Ids that end a row.
        bos_id: What an empty text starts from; default the tokenizer's "begin" or "end" id.
        version: The version's number.

    Returns:
        The path of the version's folder.

    Raises:
        ValueError: If an argument is out of range or the model cannot be decoded.
        FileExistsError: If the version exists: servers take a version as final.
        RuntimeError: If Keras runs on another backend than TensorFlow.
    """
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            "export needs Keras on TensorFlow; received the backend "
            f"{keras.backend.backend()!r}. Save the model as a .keras file and export that from a "
            "process with KERAS_BACKEND=tensorflow."
        )
    check_positive(max_new_tokens=max_new_tokens, version=version)
    folder = Path(path) / str(version)
    if folder.exists():
        raise FileExistsError(f"version {version} exists already: {folder}. Give a new version=.")
    stepper, sampler = Stepper(model), Greedy() if sampler is None else sampler
    bos_id = tokenizer.start_id if bos_id is None else bos_id
    check_request(stepper, tokenizer, sampler, stop_ids, bos_id)
    module = _TextModule(stepper, tokenizer, max_new_tokens, sampler, stop_ids, bos_id)
    # Written beside and renamed, so that a server never sees half a version.
    partial = folder.with_name(f".{version}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    tf.saved_model.save(module, str(partial), signatures={"serving_default": module.serve})
    os.replace(partial, folder)
    return folder


class _TextModule(tf.Module):
    """What the SavedModel holds: weights, the tokenizer's tables and one function."""

    def __init__(self, stepper, tokenizer, max_new_tokens, sampler, stop_ids, bos_id):
        super().__init__()
        longest = stepper.context_length
        if longest is not None and max_new_tokens >= longest:
            raise ValueError(
                "max_new_tokens must leave room for a prompt; received "
                f"max_new_tokens={max_new_tokens}, context_length={longest}."
            )
        self.weights = [variable.value for variable in stepper.variables]
        self.tables = tokenizer.resources
        stops = tf.constant(list(stop_ids), "int32")

        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string, name="text")], autograph=False
        )
        def serve(text):
            rows = tokenizer.encode_tensor(text)
            token_ids, valid = _pad_left(_start_empty(rows, text, bos_id))
            _check_lengths(valid, max_new_tokens, longest)
            new_ids, live, _ = decode(
                stepper,
                token_ids,
                valid,
                max_new_tokens,
                tf.constant(max_new_tokens),
                sampler,
                tf.random.uniform([2], -(2**31), 2**31 - 1, tf.int32),
                stops,
            )
            stopped = tf.reduce_any(new_ids[..., None] == stops, axis=-1)
            kept = tf.ragged.boolean_mask(new_ids, live & ~stopped)
            return {"text": tokenizer.decode_tensor(kept)}

        self.serve = serve


def _start_empty(rows, text, bos_id):
    """Returns ragged rows, those without a token starting from `bos_id`."""
    empty = rows.row_lengths() == 0
    if bos_id is None:
        message = "an empty text has no token to start from; give export a bos_id"
        with tf.control_dependencies([tf.debugging.Assert(~tf.reduce_any(empty), [message, text])]):
            return tf.identity(rows)
    starts = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.math.count_nonzero(empty)], tf.constant(bos_id, rows.dtype)),
        tf.cast(empty, tf.int64),
    )
    return tf.concat([starts, rows], axis=1)


def _pad_left(rows):
    """Returns `(token_ids, valid)` `[B, P]` with the tokens on the right, and one pad or more."""
    lengths = tf.cast(rows.row_lengths(), tf.int32)
    slots = tf.reduce_max(tf.concat([lengths, [1]], axis=0)) + 1
    source = tf.range(slots)[None, :] - (slots - lengths[:, None])
    dense = rows.to_tensor()
    token_ids = tf.gather(dense, tf.maximum(source, 0), batch_dims=1)
    return tf.where(source >= 0, token_ids, 0), source >= 0


def _check_lengths(valid, max_new_tokens, longest):
    if longest is None:
        return
    length = tf.reduce_max(tf.math.count_nonzero(valid, axis=1, dtype=tf.int32))
    tf.debugging.assert_less_equal(
        length,
        longest - max_new_tokens,
        message=f"a text has too many tokens for the context of {longest} tokens, of which "
        f"{max_new_tokens} are kept for the answer",
    )
