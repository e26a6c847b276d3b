"""Checkpoints: Hugging Face's safetensors in and out, by one engine and a table per family."""

from keras_arch.checkpoints.load import Loaded, Report, load, read
from keras_arch.checkpoints.save import save
