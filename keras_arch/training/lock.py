"""One process at a time in a folder."""

import os
import weakref

try:
    import fcntl
except ImportError:  # Windows: two processes are not told apart there.
    fcntl = None


class FolderLock:
    """Holds a folder's `.lock` file until `release()`, its own end or the process's, even a kill.

    Raises:
        ValueError: another process holds it.
    """

    def __init__(self, folder):
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        #: Frees the lock; a second call does nothing.
        self.release = weakref.finalize(self, os.close, descriptor)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise ValueError(f"folder {folder} is in use by another process.") from error
