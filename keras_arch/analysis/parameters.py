"""Counting parameters without allocating them."""

from keras_arch.models import outline


def count_parameters(config):
    """Returns the number of parameters of the model that `config` describes; see `outline`.

    Args:
        config: A config of any model in the catalog.

    Raises:
        ValueError: If no model in the catalog has this kind of config.
    """
    return outline(config).count_params()
