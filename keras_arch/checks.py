"""Checks of arguments, made before any compute, with errors that name the argument."""

from numbers import Integral, Real


def check_positive(**arguments):
    """Raises ValueError naming the first argument that is not a positive integer."""
    for name, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a positive integer; received {name}={value!r}.")


def check_count(**arguments):
    """Raises ValueError naming the first argument that is not an integer of 0 or more."""
    for name, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
            raise ValueError(f"{name} must be an integer, 0 or more; received {name}={value!r}.")


def check_positive_number(**arguments):
    """Raises ValueError naming the first argument that is not a number above 0."""
    for name, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not value > 0:
            raise ValueError(f"{name} must be positive; received {name}={value!r}.")


def check_rate(**arguments):
    """Raises ValueError naming the first argument outside [0, 1)."""
    for name, value in arguments.items():
        if not isinstance(value, Real) or not 0.0 <= value < 1.0:
            raise ValueError(f"{name} must be in [0, 1); received {name}={value!r}.")


def check_fraction(**arguments):
    """Raises ValueError naming the first argument that is not between 0 and 1."""
    for name, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < value < 1.0:
            raise ValueError(f"{name} must be between 0 and 1; received {name}={value!r}.")
