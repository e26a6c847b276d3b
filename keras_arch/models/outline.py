"""A model without values for its weights."""

import concurrent.futures

import keras

from keras_arch.models.catalog import builder


def outline(config, build=None):
    """Returns the model that `config` describes, whose weights have shapes but no values.

    LLaMA 65B takes seconds and a few megabytes. The model can be looked at, not run.

    Args:
        config: A config of any model in the catalog.
        build: Function of the config that returns the model; default the catalog's builder.

    Raises:
        ValueError: If no model in the catalog has this kind of config.
    """
    build = builder(config) if build is None else build

    def build_stateless():
        # Weights made in a stateless scope wait for their values. Keras would give them at the
        # next scope's end in the same thread: this thread has none.
        with keras.StatelessScope(initialize_variables=False):
            return build(config)

    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(build_stateless).result()
