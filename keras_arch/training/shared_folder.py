"""One run folder for all workers of a cluster: the chief writes it, the others read it."""

import contextlib
import json
import pathlib

from keras_arch.training.run_folder import RunFolder


class FollowedRunFolder(RunFolder):
    """A run folder that another process holds, to read from; takes no lock and writes nothing."""

    def __init__(self, path, settings):
        self.path = pathlib.Path(path)
        self.settings = json.loads(json.dumps(settings))

    def close(self):
        """Does nothing."""


@contextlib.contextmanager
def shared_run_folder(strategy, path, settings, overwrite=False):
    """Context of a RunFolder: the chief's own, and for the other workers one to read.

    All workers must see the same file system. They begin when the chief has opened the folder and
    leave together, so that none is missing from the cluster while the chief still writes. Without a
    cluster it is a plain RunFolder.

    Args:
        strategy: `keras_arch.training.Strategy`.
        The others are those of RunFolder.

    Raises:
        ValueError: as RunFolder; in the other workers, that the chief could not open it.
    """
    folder = None if strategy.chief else FollowedRunFolder(path, settings)
    try:
        if strategy.chief:
            folder = RunFolder(path, settings, overwrite)
    finally:
        opened = strategy.all_agree(folder is not None)
    if not opened:
        raise ValueError(f"the chief worker could not open run folder {path}; see what it printed.")
    with folder:
        yield folder
    strategy.all_agree()
