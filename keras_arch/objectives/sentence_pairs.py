"""Rows of one text or two, as BERT reads them, and pairs of texts that follow each other or not."""

import numpy as np

from keras_arch.checks import check_positive
from keras_arch.objectives.rows import checked_row, generator


def pack_texts(firsts, seconds=None, *, length, classification_id, separator_id, between=1):
    """Lays texts, alone or in pairs, between special tokens: `[CLS] a [SEP] b [SEP]`.

    Where a pair is too long, tokens are taken from the end of the longer text, one after another;
    of the second, where both are as long.

    Args:
        firsts: Lists of token ids, without special tokens.
        seconds: As many others, or None.
        length: T, columns of all rows.
        classification_id: Id of the first token; RoBERTa's is `<s>`.
        separator_id: Id of what ends each text; RoBERTa's is `</s>`.
        between: Separators between the two; RoBERTa has 2.

    Returns:
        A dict of `token_ids` int32 `[B, T]`, 0 at pads; `valid` bool `[B, T]`; and `type_ids`
        int32 `[B, T]`, 1 for the second text and its separator, else 0. For a model without types,
        take the last out.

    Raises:
        ValueError: If an argument is out of range, there are not as many seconds as firsts, or the
            special tokens leave no room.

    Source: Devlin et al. 2019, section 3 and appendix A.2; `truncate_seq_pair` of its code.
    """
    check_positive(length=length, between=between)
    begin, end = _special(classification_id), _special(separator_id)
    if seconds is not None and len(seconds) != len(firsts):
        raise ValueError(
            f"seconds must be as many as firsts; received {len(firsts)} firsts, "
            f"{len(seconds)} seconds."
        )
    room = length - (2 if seconds is None else 2 + between)
    if room < 1:
        raise ValueError(f"length must leave room for a token; received length={length}.")
    rows = []
    for i, first in enumerate(firsts):
        texts = [first] if seconds is None else [first, seconds[i]]
        texts = _truncated([checked_row(token_ids=text) for text in texts], room)
        rest = [] if seconds is None else [*np.repeat(end, between - 1), *texts[1], *end]
        rows.append(([*begin, *texts[0], *end], rest))
    return _inputs(rows, length)


def next_sentence_pairs(documents, seed, length):
    """Cuts documents into pairs of texts, of which half do not belong together.

    Sentences are taken until they fill the length; they are divided at random into a first and a
    second text. In half of the pairs, and wherever there is one sentence alone, the second is a
    random piece of another document instead, and the sentences that it displaces come again.

    Args:
        documents: Lists of sentences, each a list of token ids; at least two documents.
        seed: Non-negative integer or `numpy.random.Generator`.
        length: Tokens of a pair, about: its last sentence may go beyond, for `pack_texts` to cut.

    Returns:
        `(firsts, seconds, labels)`: two lists of int32 ids; int32 `[n]`, 0 where the second follows
        the first, 1 where it is random.

    Raises:
        ValueError: If there are less than two documents with sentences, or an argument is out of
            range.

    Source: Devlin et al. 2019, section 3.1 and appendix A.2; `create_pretraining_data` of its code.
    """
    check_positive(length=length)
    random = generator(seed)
    documents = [[checked_row(token_ids=s) for s in document] for document in documents]
    documents = [kept for document in documents if (kept := [s for s in document if len(s)])]
    if len(documents) < 2:
        raise ValueError(
            f"documents must hold 2 that are not empty, at least; received {len(documents)}."
        )
    firsts, seconds, labels = [], [], []
    for i, document in enumerate(documents):
        begin = 0
        while begin < len(document):
            end = _end(document, begin, length)
            middle = begin + 1 if end == begin + 1 else int(random.integers(begin + 1, end))
            first = np.concatenate(document[begin:middle])
            is_random = middle == end or random.random() < 0.5
            if is_random:
                second, begin = _elsewhere(documents, i, length - len(first), random), middle
            else:
                second, begin = np.concatenate(document[middle:end]), end
            firsts.append(first)
            seconds.append(second)
            labels.append(int(is_random))
    return firsts, seconds, np.array(labels, "int32")


def _special(token):
    return checked_row(special_token_id=[token])


def _truncated(texts, room):
    """Returns one or two texts cut to `room` tokens in all."""
    lengths = [len(text) for text in texts]
    while sum(lengths) > room:
        # Of equal lengths, the last.
        longest = max(range(len(lengths)), key=lambda i: (lengths[i], i))
        lengths[longest] -= 1
    return [text[:n] for text, n in zip(texts, lengths, strict=True)]


def _inputs(rows, length):
    """Returns the arrays of rows, each of the ids of type 0 and those of type 1."""
    inputs = {name: np.zeros((len(rows), length), "int32") for name in ("token_ids", "type_ids")}
    valid = np.zeros((len(rows), length), bool)
    for i, (first, second) in enumerate(rows):
        end = len(first) + len(second)
        inputs["token_ids"][i, :end] = [*first, *second]
        inputs["type_ids"][i, len(first) : end] = 1
        valid[i, :end] = True
    return {**inputs, "valid": valid}


def _end(document, begin, length):
    """Returns where the sentences from `begin` on fill the length, or the document's end."""
    totals = np.cumsum([len(sentence) for sentence in document[begin:]])
    return begin + min(int(np.searchsorted(totals, length)) + 1, len(totals))


def _elsewhere(documents, own, room, random):
    """Returns sentences of another document from a random one on, until they fill the room."""
    other = (own + int(random.integers(1, len(documents)))) % len(documents)
    begin = int(random.integers(len(documents[other])))
    return np.concatenate(documents[other][begin : _end(documents[other], begin, max(room, 1))])
