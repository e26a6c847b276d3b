"""From what a user hands over to padded arrays, with every check before any compute."""

from collections.abc import Collection, Iterable

import numpy as np

from keras_arch.generation.samplers import Sampler


def token_rows(texts, valid=None, tokenizer=None, name="prompts"):
    """Returns texts as a list of lists of token ids, without pads; an empty one stays empty.

    Args:
        texts: Lists of ids of any lengths; or an int array `[B, T]` with `valid`; or, with a
            tokenizer, a string or list of strings.
        valid: bool `[B, T]`, True = real token; pads may stand on either side.
        tokenizer: A `keras_arch.text` tokenizer, for strings.
        name: The argument's name in messages.

    Raises:
        ValueError: If there is no list, strings come without a tokenizer, an id is no integer, or
            the shapes of the two arrays differ.
    """
    texts = listed(texts, name)
    if valid is not None:
        texts = _real_tokens(texts, valid, name)
    rows = []
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            rows.append(_ids(text, f"{name}[{i}]"))
        elif tokenizer is None:
            raise ValueError(f"{name} of text need tokenizer=; received {name}[{i}]={text!r}.")
        else:
            rows.append(list(tokenizer.encode(text)))
    return rows


def prompt_rows(prompts, valid=None, tokenizer=None, bos_id=None):
    """Returns prompts as `token_rows` does, an empty one starting from `bos_id`.

    Raises:
        ValueError: As `token_rows`; or if a row is empty and there is no `bos_id`.
    """
    prompts = listed(prompts, "prompts")
    rows = token_rows(prompts, valid, tokenizer)
    for i, row in enumerate(rows):
        if not row and bos_id is None:
            raise ValueError(
                f"prompts[{i}] is empty and there is no bos_id to start from; received "
                f"prompts[{i}]={prompts[i]!r}."
            )
    return [row or [bos_id] for row in rows]


def listed(texts, name):
    """Returns texts as a list, one string as a list of it; raises ValueError if they are none."""
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable):
        raise ValueError(f"{name} must be a string or a list; received {name}={texts!r}.")
    return list(texts)


def _ids(text, name):
    array = np.asarray(text)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"{name} must be a list of token ids; received {text!r}.")
    return array.tolist()


def _real_tokens(texts, valid, name):
    texts, valid = np.asarray(texts), np.asarray(valid)
    if texts.shape != valid.shape or texts.ndim != 2:
        raise ValueError(
            f"{name} and valid must be arrays [B, T] of one shape; received "
            f"{name}.shape={texts.shape}, valid.shape={valid.shape}."
        )
    return [row[keep] for row, keep in zip(texts, valid.astype(bool), strict=True)]


def check_request(stepper, tokenizer, sampler, stop_ids, bos_id):
    """Raises ValueError for what does not go with the model, before any compute.

    The tokenizer must have the model's vocabulary, the sampler must be one, and stop ids and
    `bos_id` must be ids of the vocabulary.
    """
    size = stepper.vocabulary_size
    if tokenizer is not None and size is not None and tokenizer.vocabulary_size != size:
        raise ValueError(
            "the tokenizer must have the model's vocabulary; received a tokenizer of "
            f"{tokenizer.vocabulary_size} tokens and a model of {size}."
        )
    if not isinstance(sampler, Sampler):
        raise ValueError(
            f"sampler must be Greedy(...) or Sample(...); received sampler={sampler!r}."
        )
    if not isinstance(stop_ids, Collection):
        raise ValueError(f"stop_ids must be a list of token ids; received stop_ids={stop_ids!r}.")
    named = [("stop_ids", token) for token in stop_ids]
    named += [("bos_id", bos_id)] if bos_id is not None else []
    for name, token in named:
        known = isinstance(token, int | np.integer) and not isinstance(token, bool)
        if not known or token < 0 or (size and token >= size):
            raise ValueError(
                f"{name} must hold ids of the vocabulary of {size} tokens; received {token!r}."
            )


def check_ids(rows, vocabulary_size=None, name="prompts"):
    """Raises ValueError, naming the row, for ids outside the vocabulary."""
    for i, row in enumerate(rows):
        wrong = [t for t in row if t < 0 or (vocabulary_size and t >= vocabulary_size)]
        if wrong:
            raise ValueError(
                f"{name}[{i}] has token id {wrong[0]}, outside the vocabulary of "
                f"{vocabulary_size} tokens."
            )


def check_rows(rows, max_new_tokens, vocabulary_size=None, context_length=None):
    """Raises ValueError, naming the row, for ids outside the vocabulary and for too long rows."""
    check_ids(rows, vocabulary_size)
    for i, row in enumerate(rows):
        if context_length is not None and len(row) + max_new_tokens > context_length:
            raise ValueError(
                f"prompts[{i}] is too long for the model's context: {len(row)} tokens of prompt "
                f"and max_new_tokens={max_new_tokens} make {len(row) + max_new_tokens}, "
                f"context_length={context_length}."
            )


def pad_left(rows, length):
    """Returns `(token_ids, valid)`, int32 and bool numpy `[B, length]`, tokens on the right."""
    return _padded(rows, length, lambda row: slice(length - len(row), None))


def pad_right(rows, length):
    """Returns `(token_ids, valid)`, int32 and bool numpy `[B, length]`, tokens on the left."""
    return _padded(rows, length, lambda row: slice(len(row)))


def _padded(rows, length, place):
    token_ids = np.zeros((len(rows), length), "int32")
    valid = np.zeros((len(rows), length), "bool")
    for i, row in enumerate(rows):
        token_ids[i, place(row)], valid[i, place(row)] = row, True
    return token_ids, valid
