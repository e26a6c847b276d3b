"""How the next token is chosen from its logits: `Greedy` or `Sample`, each after filters."""

from keras import ops

from keras_arch.generation.candidates import Candidates
from keras_arch.generation.filters import Temperature


class Sampler:
    """Filters that apply in the order given, before a choice that a subclass makes.

    Args:
        *filters: `Temperature`, `TopK`, `TopP`, `MinP`, `RepetitionPenalty`, `NoRepeatNGram`,
            `MinimumLength`, or other filters; see `keras_arch.generation.filters`.

    Raises:
        ValueError: If something else is given.
    """

    def __init__(self, *filters):
        for part in filters:
            if isinstance(part, type) or not (
                hasattr(part, "filter") and hasattr(part, "reads_tokens")
            ):
                raise ValueError(
                    "filters must be Temperature(...), TopK(...) and the like, or objects with the "
                    f"same members; received {part!r}."
                )
        self.filters = filters

    def __eq__(self, other):
        return type(other) is type(self) and self.filters == other.filters

    def __hash__(self):
        return hash((type(self), self.filters))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, self.filters))})"

    @property
    def reads_tokens(self):
        """Whether any filter reads the tokens so far, `past.token_ids`."""
        return any(part.reads_tokens for part in self.filters)

    def with_temperature(self, temperature):
        """Returns a `Sample` with these filters and this temperature; 0 in a tensor is greedy.

        It takes the place of the sampler's own `Temperature`. If there is none, it comes after the
        filters that read the tokens so far, before the others.

        Args:
            temperature: A positive number; or a scalar tensor inside a program.
        """
        new, filters = Temperature(temperature), list(self.filters)
        own = [i for i, part in enumerate(filters) if isinstance(part, Temperature)]
        if own:
            filters[own[0] : own[0] + 1] = [new]
            return Sample(*(p for p in filters if p is new or not isinstance(p, Temperature)))
        last = max((i + 1 for i, part in enumerate(filters) if part.reads_tokens), default=0)
        return Sample(*filters[:last], new, *filters[last:])

    def candidates(self, logits, past=None):
        """Returns the `Candidates` that the filters leave of logits float32 `[B, V]`."""
        candidates = Candidates(logits, logits.shape[-1])
        for part in self.filters:
            candidates = part.filter(candidates, past)
        return candidates


class Greedy(Sampler):
    """Takes the most probable token that the filters leave; of equals, the one of lowest id."""

    def choose(self, logits, uniform=None, past=None):
        """Returns token ids int32 `[B]` for logits float32 `[B, V]`; `uniform` is not used."""
        candidates = self.candidates(logits, past)
        if candidates.token_ids is None:
            return ops.cast(ops.argmax(candidates.logits, axis=-1), "int32")
        return candidates.top(1).token_ids[:, 0]

    def probabilities(self, logits, past=None):
        """Returns float32 `[B, V]`: 1 at the token it takes."""
        return ops.one_hot(self.choose(logits, past=past), logits.shape[-1], dtype="float32")


class Sample(Sampler):
    """Draws the next token: `Sample(Temperature(0.8), TopK(40), TopP(0.95))`.

    With no filter, the model's own distribution is drawn from.
    """

    def choose(self, logits, uniform, past=None):
        """Returns token ids int32 `[B]`.

        Args:
            logits: float32 `[B, V]`.
            uniform: float32 `[B]`, random in [0, 1).
            past: A `Past`; what no filter reads may be missing.
        """
        candidates = self.candidates(logits, past)
        # Inverts the cumulative distribution.
        cumulative = ops.cumsum(candidates.probabilities(), axis=-1)
        threshold = uniform[:, None] * cumulative[:, -1:]
        place = ops.sum(ops.cast(cumulative <= threshold, "int32"), axis=-1)
        if candidates.token_ids is None:
            return place
        return ops.take_along_axis(candidates.token_ids, place[:, None], axis=-1)[:, 0]

    def probabilities(self, logits, past=None):
        """Returns the distribution that `choose` draws from, float32 `[B, V]`."""
        candidates = self.candidates(logits, past)
        return candidates.spread(candidates.probabilities())
