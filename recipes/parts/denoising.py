"""How a window of a text becomes a pair: what T5 and BART are pretrained on.

Both kinds of noise have

    window          tokens of a window, so that a pair fits the context
    lengths         most tokens of a source, and of a target, with their ends
    special_tokens  role to name, of the tokens that the noise needs
    corrupt         of a tokenizer: a function of a window and a generator to a pair
    fill            of a tokenizer: a function of a source and what was written to the whole text
"""

import functools

import keras_arch as ka
from keras_arch.checks import check_fraction
from keras_arch.objectives.spans import check_mean_length, span_counts


class DroppedSpans:
    """T5's: spans drop out of the source, each for a sentinel, and the target lists them.

    Args:
        context: Most tokens of a source or a target.
        rate: Share of the tokens that drops out.
        mean_length: Mean tokens of a span.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(self, context, rate, mean_length):
        self.window = context - 1
        self.options = {"rate": rate, "mean_length": mean_length}
        tokens, self.spans = span_counts(self.window, **self.options)
        # A source ends with the end, a target with one sentinel more and the end.
        self.lengths = self.window - tokens + self.spans + 1, tokens + self.spans + 2

    def special_tokens(self):
        """Returns the sentinels: one a span, and one after the last."""
        return {f"sentinel_{i}": f"<extra_id_{i}>" for i in range(self.spans + 1)}

    def sentinels(self, tokenizer):
        """Returns their ids."""
        return [tokenizer.special_ids[role] for role in self.special_tokens()]

    def corrupt(self, tokenizer):
        """Returns the function from a window and a generator to a pair."""
        sentinels = self.sentinels(tokenizer)
        return functools.partial(
            ka.objectives.span_corruption, sentinel_ids=sentinels, **self.options
        )

    def fill(self, tokenizer):
        """Returns the function from a source and its spans to the whole text."""
        sentinels = self.sentinels(tokenizer)
        return functools.partial(ka.objectives.fill_spans, sentinel_ids=sentinels)


class MaskedSpans:
    """BART's: sentences are shuffled, spans replaced by a mask each, and all is to be restored.

    Args:
        context: Most tokens of a source or a target.
        rate: Share of the tokens that is masked.
        mean_length: Mean tokens of a span.

    Raises:
        ValueError: If an argument is out of range.

    Source: Lewis et al. 2020, sections 2.2 and 5.1.
    """

    def __init__(self, context, rate, mean_length):
        check_fraction(rate=rate)
        check_mean_length(mean_length)
        self.window = context - 1
        self.options = {"rate": rate, "mean_length": mean_length}
        self.lengths = context, context

    def special_tokens(self):
        """Returns the mask."""
        return {"mask": "<mask>"}

    def corrupt(self, tokenizer):
        """Returns the function from a window and a generator to a pair."""
        mask, stops = tokenizer.special_ids["mask"], full_stops(tokenizer)
        longest = self.lengths[0] - 1

        def corrupt(ids, random):
            shuffled = ka.objectives.permute_sentences(ids, random, stops)
            source = ka.objectives.infill_text(shuffled, random, mask, **self.options)
            # Spans of length 0, of which there are few, may make a source longer than the text.
            while len(source) > longest:
                source = ka.objectives.infill_text(shuffled, random, mask, **self.options)
            return source, ids

        return corrupt

    def fill(self, tokenizer):
        """Returns the function from a source and the whole text to the whole text."""
        return lambda source, written: written


def full_stops(tokenizer):
    """Returns the ids of the tokens that end with a full stop."""
    ids = range(tokenizer.vocabulary_size)
    return [i for i in ids if tokenizer.decode([i]).endswith(".")]
