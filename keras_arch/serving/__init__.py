"""Serving: SavedModels that take text and return text."""

from keras_arch.serving.export import export
