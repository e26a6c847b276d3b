"""From what a user hands over to padded arrays, with every check before any compute."""

from collections.abc import Iterable

import numpy as np


def prompt_rows(prompts, valid=None, tokenizer=None, bos_id=None):
    """Returns prompts as a list of lists of token ids, without pads.

    Args:
        prompts: Lists of ids of any lengths; or an int array `[B, T]` with `valid`; or, with a
            tokenizer, a string or list of strings.
        valid: bool `[B, T]`, True = real token; pads may stand on either side.
        tokenizer: A `keras_arch.text` tokenizer, for strings.
        bos_id: What an empty prompt starts from.

    Raises:
        ValueError: If strings come without a tokenizer, a row is empty and there is no `bos_id`,
            an id is not an integer of at least 0, or the shapes of the two arrays differ.
    """
    if isinstance(prompts, str):
        prompts = [prompts]
    if valid is not None:
        prompts = _real_tokens(prompts, valid)
    rows = []
    for i, prompt in enumerate(prompts):
        if isinstance(prompt, str):
            if tokenizer is None:
                raise ValueError(
                    f"prompts of text need tokenizer=; received prompts[{i}]={prompt!r}."
                )
            row = list(tokenizer.encode(prompt))
        else:
            row = _ids(prompt, i)
        if not row:
            if bos_id is None:
                raise ValueError(
                    f"prompts[{i}] is empty and there is no bos_id to start from; received "
                    f"prompts[{i}]={prompt!r}."
                )
            row = [bos_id]
        rows.append(row)
    return rows


def _ids(prompt, i):
    array = np.asarray(prompt)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"prompts[{i}] must be a list of token ids; received {prompt!r}.")
    return array.tolist()


def _real_tokens(prompts, valid):
    prompts, valid = np.asarray(prompts), np.asarray(valid)
    if prompts.shape != valid.shape or prompts.ndim != 2:
        raise ValueError(
            "prompts and valid must be arrays [B, T] of one shape; received "
            f"prompts.shape={prompts.shape}, valid.shape={valid.shape}."
        )
    return [row[keep] for row, keep in zip(prompts, valid.astype(bool), strict=True)]


def check_request(stepper, tokenizer, sampler, stop_ids, bos_id):
    """Raises ValueError for what does not go with the model, before any compute.

    The tokenizer must have the model's vocabulary, the sampler a method `choose`, and stop ids and
    `bos_id` must be ids of the vocabulary.
    """
    size = stepper.vocabulary_size
    if tokenizer is not None and size is not None and tokenizer.vocabulary_size != size:
        raise ValueError(
            "the tokenizer must have the model's vocabulary; received a tokenizer of "
            f"{tokenizer.vocabulary_size} tokens and a model of {size}."
        )
    if isinstance(sampler, type) or not hasattr(sampler, "choose"):
        raise ValueError(f"sampler must be Greedy() or Sample(...); received sampler={sampler!r}.")
    if not isinstance(stop_ids, Iterable):
        raise ValueError(f"stop_ids must be a list of token ids; received stop_ids={stop_ids!r}.")
    named = [("stop_ids", token) for token in stop_ids]
    named += [("bos_id", bos_id)] if bos_id is not None else []
    for name, token in named:
        if not isinstance(token, int | np.integer) or token < 0 or (size and token >= size):
            raise ValueError(
                f"{name} must hold ids of the vocabulary of {size} tokens; received {token!r}."
            )


def check_rows(rows, max_new_tokens, vocabulary_size=None, context_length=None):
    """Raises ValueError, naming the row, for ids outside the vocabulary and for too long rows."""
    for i, row in enumerate(rows):
        wrong = [t for t in row if t < 0 or (vocabulary_size and t >= vocabulary_size)]
        if wrong:
            raise ValueError(
                f"prompts[{i}] has token id {wrong[0]}, outside the vocabulary of "
                f"{vocabulary_size} tokens."
            )
        if context_length is not None and len(row) + max_new_tokens > context_length:
            raise ValueError(
                f"prompts[{i}] is too long for the model's context: {len(row)} tokens of prompt "
                f"and max_new_tokens={max_new_tokens} make {len(row) + max_new_tokens}, "
                f"context_length={context_length}."
            )


def pad_left(rows, length):
    """Returns `(token_ids, valid)`, int32 and bool numpy `[B, length]`, tokens on the right."""
    token_ids = np.zeros((len(rows), length), "int32")
    valid = np.zeros((len(rows), length), "bool")
    for i, row in enumerate(rows):
        token_ids[i, length - len(row) :] = row
        valid[i, length - len(row) :] = True
    return token_ids, valid
