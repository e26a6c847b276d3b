"""The folder that one training writes: what was asked, what happened, what came out."""

import json
import os
import pathlib
import shutil

from keras_arch.training import files
from keras_arch.training.lock import FolderLock

#: The key in settings.json that tells a run folder from any other; its value is the layout.
MARKER = "keras_arch_run"
LAYOUT = 1
#: What a process killed before it wrote settings.json leaves.
UNFINISHED = {".lock", ".writing-settings.json"}


class RunFolder:
    """A folder with the settings, logs, checkpoints and results of one training.

        settings.json   what was asked; a resumed run must ask the same
        log.csv         one row per log point
        events/         the same for TensorBoard
        checkpoints/    see `keras_arch.training.Checkpoints`
        curves.png, samples.txt, model.keras, tokenizer/, export/   results
        report.json     figures; written last, so its presence means "finished"

    One process at a time may hold it: until `close()`, the end of its `with` block or the end of
    the process.

    Args:
        path: folder to create or to resume.
        settings: dict of JSON values, compared with those of an earlier run that has a checkpoint.
        overwrite: True removes an earlier run first.

    Raises:
        ValueError: the folder holds something else than a run, holds a run with different
            settings, is damaged, is in use by another process, or cannot be written.
    """

    def __init__(self, path, settings, overwrite=False):
        self.path = pathlib.Path(path)
        self.settings = json.loads(json.dumps(settings))
        try:
            if self.holds_run() and overwrite:
                self.remove()
            self.path.mkdir(parents=True, exist_ok=True)
            self.lock = FolderLock(self.path)
            try:
                self.start_or_resume()
            except BaseException:
                self.close()
                raise
        except OSError as error:
            raise ValueError(f"run folder {self.path} cannot be written: {error}.") from error

    def __truediv__(self, name):
        """Returns the path of `name` inside the folder."""
        return self.path / name

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Lets other processes use the folder."""
        self.lock.release()

    def holds_run(self):
        """Returns whether an earlier run is there; raises where something else is."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"run folder {self.path} is not a folder.")
        names = {entry.name for entry in self.path.iterdir()} if self.path.exists() else set()
        if names <= UNFINISHED:
            return False
        if "settings.json" not in names:
            raise ValueError(
                f"run folder {self.path} holds other files ({', '.join(sorted(names)[:3])}) and "
                "no settings.json; choose another folder."
            )
        file = self.path / "settings.json"
        if files.read_json(file).get(MARKER) != LAYOUT:
            raise ValueError(
                f"{file} was not written by a run (it has no {MARKER}={LAYOUT}); "
                "choose another folder."
            )
        return True

    def remove(self):
        """Removes the earlier run; killed meanwhile, it leaves the path free."""
        path = self.path.resolve()
        removing = path.with_name(f".removing-{path.name}")
        lock = FolderLock(path)
        try:
            if removing.exists():
                shutil.rmtree(removing)
            os.replace(path, removing)
            shutil.rmtree(removing)
        finally:
            lock.release()

    def start_or_resume(self):
        """Compares the settings with those of a run that has begun, else writes them."""
        file = self.path / "settings.json"
        if self.has_begun():
            earlier = files.read_json(file).get("settings", {})
            for key in sorted(earlier.keys() | self.settings.keys()):
                if earlier.get(key) != self.settings.get(key):
                    raise ValueError(
                        f"run folder {self.path} was started with {key}={earlier.get(key)!r}; "
                        f"received {key}={self.settings.get(key)!r}. Use the same setting to "
                        "resume, another folder, or overwrite=True to start again."
                    )
        document = {MARKER: LAYOUT, "settings": self.settings}
        files.write_text(file, json.dumps(document, indent=2) + "\n")
        for name in ("checkpoints", "events"):
            (self.path / name).mkdir(exist_ok=True)

    def has_begun(self):
        """Returns whether there is a checkpoint or a report."""
        return any(self.path.glob("checkpoints/step-*")) or (self.path / "report.json").exists()

    def report(self):
        """Returns the report of a finished run, or None."""
        file = self.path / "report.json"
        return files.read_json(file) if file.exists() else None
