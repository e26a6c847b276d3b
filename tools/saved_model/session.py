"""A SavedModel loaded by TensorFlow's C API, to be asked by signature."""

import contextlib
import ctypes
from pathlib import Path

import numpy as np

from saved_model import protobuf, tensors
from saved_model.c_api import CApi, Output
from saved_model.description import Description, Signature

TAG = "serve"  # the graph for serving; training graphs have other tags


class Session:
    """Holds a loaded SavedModel; use it in a `with` statement, which frees it.

    Args:
        api: the C API.
        folder: the folder of saved_model.pb.
        description: what `read_description` says of it.

    Raises RuntimeError if it uses operations that are not installed, or does not load.
    """

    def __init__(self, api: CApi, folder: Path, description: Description):
        self.api = api
        _provide_operations(api, description.operations)
        with contextlib.ExitStack() as owned:
            self._graph = api.TF_NewGraph()
            owned.callback(api.TF_DeleteGraph, self._graph)
            options = api.TF_NewSessionOptions()
            try:
                with api.status() as status:
                    self._session = api.TF_LoadSessionFromSavedModel(
                        options,
                        None,
                        str(folder).encode(),
                        (ctypes.c_char_p * 1)(TAG.encode()),
                        1,
                        self._graph,
                        None,
                        status,
                    )
            finally:
                api.TF_DeleteSessionOptions(options)
            owned.callback(self._close_session)
            self._owned = owned.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._owned.close()

    def run(self, signature: Signature, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs a signature; `inputs` has an array for each of its inputs."""
        api = self.api
        with contextlib.ExitStack() as owned:
            fed = (ctypes.c_void_p * len(signature.inputs))()
            for index, (name, info) in enumerate(signature.inputs.items()):
                fed[index] = tensors.new_tensor(api, inputs[name], info.dtype)
                owned.callback(tensors.delete_input, api, fed[index])
            fetched = (ctypes.c_void_p * len(signature.outputs))()
            with api.status() as status:
                api.TF_SessionRun(
                    self._session,
                    None,
                    self._outputs(signature.inputs),
                    fed,
                    len(fed),
                    self._outputs(signature.outputs),
                    fetched,
                    len(fetched),
                    None,
                    0,
                    None,
                    status,
                )
            # An output may share an input's memory, so the inputs must outlive the copies:
            # the stack frees what it was given last first.
            for tensor in fetched:
                owned.callback(api.TF_DeleteTensor, tensor)
            arrays = [tensors.to_array(api, tensor) for tensor in fetched]
        return dict(zip(signature.outputs, arrays, strict=True))

    def _outputs(self, infos) -> ctypes.Array:
        outputs = (Output * len(infos))()
        for output, info in zip(outputs, infos.values(), strict=True):
            operation, _, index = info.name.partition(":")
            output.operation = self.api.TF_GraphOperationByName(self._graph, operation.encode())
            output.index = int(index or 0)
            if not output.operation:
                raise RuntimeError(f"the graph has no operation {operation!r}.")
        return outputs

    def _close_session(self) -> None:
        # Freed even where closing fails.
        try:
            with self.api.status() as status:
                self.api.TF_CloseSession(self._session, status)
        finally:
            with self.api.status() as status:
                self.api.TF_DeleteSession(self._session, status)


def _provide_operations(api: CApi, wanted: frozenset[str]) -> None:
    """Loads tensorflow_text's operations if the model needs operations that are not there."""
    missing = wanted - _operations(api)
    if not missing:
        return
    try:
        api.load_text_operations()
        missing -= _operations(api)
    except RuntimeError as error:
        raise RuntimeError(
            f"the model uses operations that TensorFlow lacks ({', '.join(sorted(missing))}), and "
            f"those of tensorflow_text did not load: {error}"
        ) from error
    if missing:
        raise RuntimeError(
            "the model uses operations that neither TensorFlow nor tensorflow_text has: "
            f"{', '.join(sorted(missing))}."
        )


def _operations(api: CApi) -> set[str]:
    entries = protobuf.values(memoryview(api.operations()), 1)
    return {protobuf.text(protobuf.value(entry, 1, memoryview(b""))) for entry in entries}
