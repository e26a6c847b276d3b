"""Labels of words as labels of their pieces, for taggers that read pieces."""

import numpy as np

from keras_arch.objectives.crossentropy import IGNORED
from keras_arch.objectives.rows import checked_row
from keras_arch.objectives.sentence_pairs import pack_texts


def label_pieces(texts, labels, *, length, classification_id, separator_id, every_piece=False):
    """Lays texts of labelled words into rows, and gives the labels to the words' pieces.

    Args:
        texts: For each text, for each of its words, the ids of its pieces: `[tokenizer.encode(word)
            for word in words]`. The label of a word without pieces is dropped.
        labels: For each text, a label of each word; -1: to be ignored.
        length: T, columns of a row; what goes beyond is cut.
        classification_id: As in `pack_texts`.
        separator_id: As in `pack_texts`.
        every_piece: Whether each piece of a word gets its label; else the first one alone, and the
            others are ignored, as in the paper.

    Returns:
        `(inputs, targets)`: the dict of `pack_texts`, and int32 `[B, T]`, -1 at special tokens,
        pads and pieces to be ignored.

    Raises:
        ValueError: If a text has not as many labels as words, or an argument is out of range.

    Source: Devlin et al. 2019, section 5.3.
    """
    if len(texts) != len(labels):
        raise ValueError(
            f"labels must be as many as texts; received {len(texts)} texts, {len(labels)} labels."
        )
    rows, targets = [], []
    for i, (words, own) in enumerate(zip(texts, labels, strict=True)):
        if len(words) != len(own):
            raise ValueError(
                f"every word must have a label; received {len(words)} words and {len(own)} labels "
                f"in text {i}."
            )
        pieces = [checked_row(texts=word) for word in words]
        rest = [label if every_piece else IGNORED for label in own]
        rows.append([piece for word in pieces for piece in word])
        targets.append(
            [
                label if k == 0 else other
                for word, label, other in zip(pieces, own, rest, strict=True)
                for k in range(len(word))
            ]
        )
    inputs = pack_texts(
        rows, length=length, classification_id=classification_id, separator_id=separator_id
    )
    found = np.full(inputs["token_ids"].shape, IGNORED, "int32")
    for row, own in zip(found, targets, strict=True):
        # Between the two special tokens.
        own = own[: length - 2]
        row[1 : 1 + len(own)] = own
    return inputs, found
