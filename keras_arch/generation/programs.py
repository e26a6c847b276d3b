"""Compiled programs, kept by what they were compiled for."""

from keras_arch.backend import compile_function


class Programs:
    """The programs that read one list of variables.

    Once that list is another one (a layer was quantised, or adapted), none is used again.

    Args:
        limit: Programs kept; the oldest goes first.
    """

    def __init__(self, limit=32):
        self._limit = limit
        self._programs = {}
        self._variables = []

    def get(self, key, function, variables, compile=compile_function):
        """Returns the program for a key, compiled if there is none.

        Args:
            key: Hashable; all that `function` depends on besides its arguments' values.
            function: As in `keras_arch.backend.compile_function`; so are `variables`.
            compile: `compile_function`, or `compile_loop` for a loop.
        """
        if list(map(id, variables)) != list(map(id, self._variables)):
            self._programs.clear()
            self._variables = variables
        if key not in self._programs:
            if len(self._programs) == self._limit:
                self._programs.pop(next(iter(self._programs)))
            self._programs[key] = compile(function, variables)
        return self._programs[key]
