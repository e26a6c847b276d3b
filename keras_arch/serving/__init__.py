"""Serving: SavedModels that take text and return text, or what an encoder says of it."""

from keras_arch.serving.export import export
from keras_arch.serving.export_encoder import export_encoder
from keras_arch.serving.operations import foreign_operations, operations
