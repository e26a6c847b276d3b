"""TensorFlow's C API by ctypes, out of the shared libraries of an installed TensorFlow."""

import contextlib
import ctypes
import importlib.util
from collections.abc import Iterator
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path


class Output(ctypes.Structure):
    """TF_Output: one output of one operation of a graph."""

    _fields_ = [("operation", c_void_p), ("index", c_int)]


class Buffer(ctypes.Structure):
    """TF_Buffer: bytes that TensorFlow owns."""

    _fields_ = [("data", c_void_p), ("length", c_size_t), ("deallocator", c_void_p)]


# Name: (what it returns, what it takes). Source: tensorflow/c/c_api.h, tf_tensor.h, tf_tstring.h.
_FUNCTIONS = {
    "TF_Version": (c_char_p, []),
    "TF_NewStatus": (c_void_p, []),
    "TF_GetCode": (c_int, [c_void_p]),
    "TF_Message": (c_char_p, [c_void_p]),
    "TF_DeleteStatus": (None, [c_void_p]),
    "TF_LoadLibrary": (c_void_p, [c_char_p, c_void_p]),
    "TF_DeleteLibraryHandle": (None, [c_void_p]),
    "TF_GetAllOpList": (POINTER(Buffer), []),
    "TF_DeleteBuffer": (None, [POINTER(Buffer)]),
    "TF_NewGraph": (c_void_p, []),
    "TF_DeleteGraph": (None, [c_void_p]),
    "TF_GraphOperationByName": (c_void_p, [c_void_p, c_char_p]),
    "TF_NewSessionOptions": (c_void_p, []),
    "TF_DeleteSessionOptions": (None, [c_void_p]),
    "TF_LoadSessionFromSavedModel": (
        c_void_p,
        # options, run options, folder, tags, their number, graph, meta graph, status
        [c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int, c_void_p, c_void_p, c_void_p],
    ),
    "TF_CloseSession": (None, [c_void_p, c_void_p]),
    "TF_DeleteSession": (None, [c_void_p, c_void_p]),
    "TF_SessionRun": (
        None,
        [
            *[c_void_p, c_void_p],  # session, run options
            *[POINTER(Output), POINTER(c_void_p), c_int],  # inputs, their values, their number
            *[POINTER(Output), POINTER(c_void_p), c_int],  # outputs, their values, their number
            *[c_void_p, c_int, c_void_p, c_void_p],  # targets, their number, metadata, status
        ],
    ),
    "TF_AllocateTensor": (c_void_p, [c_int, POINTER(c_int64), c_int, c_size_t]),
    "TF_DeleteTensor": (None, [c_void_p]),
    "TF_TensorData": (c_void_p, [c_void_p]),
    "TF_TensorType": (c_int, [c_void_p]),
    "TF_TensorByteSize": (c_size_t, [c_void_p]),
    "TF_NumDims": (c_int, [c_void_p]),
    "TF_Dim": (c_int64, [c_void_p, c_int]),
    "TF_StringInit": (None, [c_void_p]),
    "TF_StringCopy": (None, [c_void_p, c_char_p, c_size_t]),
    "TF_StringGetDataPointer": (c_void_p, [c_void_p]),
    "TF_StringGetSize": (c_size_t, [c_void_p]),
    "TF_StringDealloc": (None, [c_void_p]),
}


class CApi:
    """The functions of the C API as methods, `api.TF_NewGraph()`.

    Raises RuntimeError if TensorFlow is not installed.
    """

    def __init__(self):
        # The linker finds libtensorflow_framework, which lies beside it, by itself.
        library = ctypes.CDLL(str(_package_folder("tensorflow") / "libtensorflow_cc.so.2"))
        for name, (returned, taken) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = returned, taken
            setattr(self, name, function)

    @property
    def version(self) -> str:
        """TensorFlow's version."""
        return self.TF_Version().decode()

    @contextlib.contextmanager
    def status(self) -> Iterator[int]:
        """A status for one call, which raises RuntimeError if the call sets an error."""
        status = self.TF_NewStatus()
        try:
            yield status
            if self.TF_GetCode(status):
                raise RuntimeError(self.TF_Message(status).decode(errors="replace"))
        finally:
            self.TF_DeleteStatus(status)

    def operations(self) -> bytes:
        """The OpList message with every operation that this process can run."""
        buffer = self.TF_GetAllOpList()
        try:
            return ctypes.string_at(buffer.contents.data, buffer.contents.length)
        finally:
            self.TF_DeleteBuffer(buffer)

    def load_text_operations(self) -> None:
        """Adds the operations of tensorflow_text. Raises RuntimeError if it is not installed."""
        folder = _package_folder("tensorflow_text") / "python" / "ops"
        for path in sorted(folder.glob("*.so")):
            with self.status() as status:
                handle = self.TF_LoadLibrary(str(path).encode(), status)
            self.TF_DeleteLibraryHandle(handle)  # the handle only: the operations stay


def _package_folder(name: str) -> Path:
    """Where a package is installed; looking it up imports nothing."""
    specification = importlib.util.find_spec(name)
    if specification is None or specification.origin is None:
        raise RuntimeError(f"the package {name} is not installed.")
    return Path(specification.origin).parent
