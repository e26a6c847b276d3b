"""Asks SavedModels through TensorFlow's C API: ctypes and NumPy, no Python TensorFlow."""
