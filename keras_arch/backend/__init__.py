"""The one core part that touches a backend's own API: what Keras does not offer for all of them."""

from keras_arch.backend.programs import compile_function, compile_loop, run_loop
from keras_arch.backend.tensors import (
    checked,
    concrete,
    kernel,
    lookup,
    sum_over_replicas,
    write_slots,
)
