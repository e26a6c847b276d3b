"""Counting parameters without allocating them."""

import concurrent.futures

import keras

from keras_arch.models.catalog import builder


def count_parameters(config):
    """Returns the number of parameters of the model that `config` describes.

    Builds the model as usual, but no weight gets a value, so LLaMA 65B takes seconds and a few
    megabytes.

    Args:
        config: A config of any model in the catalog.

    Raises:
        ValueError: If no model in the catalog has this kind of config.
    """
    build = builder(config)

    def count():
        # Weights made in a stateless scope wait for their values. Keras would give them at the
        # next scope's end in the same thread: this thread has none.
        with keras.StatelessScope(initialize_variables=False):
            return build(config).count_params()

    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(count).result()
