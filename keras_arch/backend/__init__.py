"""The one core part that touches a backend's own API: what Keras does not offer for all of them."""

from keras_arch.backend.fused import fused_recurrence
from keras_arch.backend.loops import scan
from keras_arch.backend.noise import draws_by_hash, random_bits
from keras_arch.backend.ordering import sorts_fast, top_places
from keras_arch.backend.programs import compile_function, compile_loop, run_loop
from keras_arch.backend.recurrence import recur
from keras_arch.backend.tensors import (
    checked,
    concrete,
    kernel,
    lookup,
    read_slots,
    sum_over_replicas,
    write_slots,
)
