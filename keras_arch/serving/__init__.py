"""Serving: SavedModels that take text and return text."""

from keras_arch.serving.export import export
from keras_arch.serving.operations import foreign_operations, operations
