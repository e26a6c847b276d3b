"""Models made ready to be decoded, and their compiled programs, kept for the next call."""

import weakref

from keras_arch.backend import compile_function, compile_loop
from keras_arch.generation.stepper import Stepper


class Programs:
    """Programs that read one list of variables, by what they were compiled for.

    Once that list is another one (a layer was quantised, or adapted), none is used again.

    Args:
        compile: `compile_function` or `compile_loop` of `keras_arch.backend`.
        limit: Programs kept; the oldest goes first.
    """

    def __init__(self, compile, limit=32):
        self._compile = compile
        self._limit = limit
        self._programs = {}
        self._variables = []

    def get(self, key, function, variables):
        """Returns the program for a key, compiled if there is none.

        Args:
            key: Hashable; all that `function` depends on besides its arguments' values.
            function: What `compile` takes; so are `variables`.
        """
        if list(map(id, variables)) != list(map(id, self._variables)):
            self._programs.clear()
            self._variables = variables
        if key not in self._programs:
            if len(self._programs) == self._limit:
                self._programs.pop(next(iter(self._programs)))
            self._programs[key] = self._compile(function, variables)
        return self._programs[key]


class Prepared:
    """A model's `Stepper` and all programs compiled for it.

    Attributes:
        stepper: The `Stepper`.
        functions: Programs of functions, which read the model's variables.
        loops: Programs of loops, which do.
    """

    def __init__(self, model):
        self.stepper = Stepper(model)
        self.functions = Programs(compile_function)
        self.loops = Programs(compile_loop)
        self._loops_with = weakref.WeakKeyDictionary()

    def loops_with(self, other):
        """Returns the programs of loops that read another model's variables, too."""
        return self._loops_with.setdefault(other, Programs(compile_loop))


# A cache that keeps nothing alive: an entry goes with its model.
_prepared = weakref.WeakKeyDictionary()


def prepare(model):
    """Returns the one `Prepared` of a model, which lives as long as the model.

    Raises:
        ValueError: If the model cannot be decoded; see `Stepper`.
    """
    if model not in _prepared:
        _prepared[model] = Prepared(model)
    return _prepared[model]
