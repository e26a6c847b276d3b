"""What stands at the masks of a text, by a masked language model."""

from typing import NamedTuple

import numpy as np

from keras_arch.checks import check_positive
from keras_arch.generation.buckets import bucket, padded_length
from keras_arch.generation.prompts import listed
from keras_arch.layers.positions import check_context, shortest_context


class Filling(NamedTuple):
    """A token for a mask.

    Attributes:
        token_id: int.
        token: Its text.
        probability: float, of all tokens at that mask.
    """

    token_id: int
    token: str
    probability: float


def fill_mask(model, texts, tokenizer, top=5):
    """Ranks the tokens that may stand at each mask of a text.

    ```
    ((fillings,),) = ka.fill_mask(model, "the [MASK] flew out of the cave", tokenizer)
    fillings[0].token, fillings[0].probability
    ```

    A text may name special tokens; the tokenizer's classification (or begin) token is put before
    it, its separator (or end) token behind. Several masks of one text are told each by itself.

    Args:
        model: From `masked_lm`.
        texts: A string or a list of strings, each with a mask at least.
        tokenizer: A tokenizer of `keras_arch.text` with a mask among its special tokens.
        top: Fillings for each mask.

    Returns:
        For each text, for each of its masks, the `Filling`s, the most probable first.

    Raises:
        ValueError: If there is no list, the model is no masked language model, the tokenizer has no
            mask or another vocabulary, a text has no mask, or is longer than the model's context.
    """
    texts = listed(texts, "texts")
    size = check_filling(model, tokenizer, top)
    if not texts:
        return []
    rows = [_row(tokenizer, text) for text in texts]
    mask_id = tokenizer.special_ids["mask"]
    masks = [[i for i, token in enumerate(row) if token == mask_id] for row in rows]
    for i, places in enumerate(masks):
        if not places:
            raise ValueError(f"every text must have a mask; received texts[{i}]={texts[i]!r}.")
    limit = shortest_context(model.layers)
    longest = max(map(len, rows))
    check_context(longest, limit)
    inputs = {
        "token_ids": _padded(rows, padded_length(longest, limit)),
        "masked_positions": _padded(masks, bucket(max(map(len, masks)))),
    }
    time = inputs["token_ids"].shape[1]
    inputs["valid"] = np.arange(time) < np.array([len(row) for row in rows])[:, None]
    inputs["type_ids"] = np.zeros_like(inputs["token_ids"])
    names = {x.name for x in model.inputs}
    logits = model.predict_on_batch({name: x for name, x in inputs.items() if name in names})
    return [
        [_best(row[i], min(top, size), tokenizer) for i in range(len(places))]
        for row, places in zip(logits, masks, strict=True)
    ]


def check_filling(model, tokenizer, top):
    """Returns V; raises ValueError as `fill_mask` for what is no text."""
    check_positive(top=top)
    names = sorted(x.name for x in model.inputs)
    if "masked_positions" not in names or isinstance(model.output, dict):
        raise ValueError(
            "model must come from masked_lm; received one with inputs "
            f"{names}, output {model.output}."
        )
    if "mask" not in tokenizer.special_ids:
        raise ValueError(
            "tokenizer must have a mask among its special tokens; received one with "
            f"{sorted(tokenizer.special_ids)}."
        )
    size = model.output.shape[-1]
    if tokenizer.vocabulary_size != size:
        raise ValueError(
            "tokenizer must have the model's vocabulary; received "
            f"tokenizer.vocabulary_size={tokenizer.vocabulary_size}, the model's is {size}."
        )
    return size


def _row(tokenizer, text):
    first, last = tokenizer.edge_ids
    row = [first, *tokenizer.encode(text, parse_special=True), last]
    return [token for token in row if token is not None]


def _padded(rows, length):
    """Returns int32 `[B, length]`, zeros behind each row."""
    return np.array([[*row, *[0] * (length - len(row))] for row in rows], "int32")


def _best(logits, top, tokenizer):
    """Returns the first fillings by the logits `[V]` of a mask."""
    scores = logits.astype("float64")
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    best = np.argsort(-chances, kind="stable")[:top].tolist()
    return [Filling(i, tokenizer.decode([i]), float(chances[i])) for i in best]
