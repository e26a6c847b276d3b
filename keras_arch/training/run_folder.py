"""The folder that one training writes: what was asked, what happened, what came out."""

import json
import pathlib
import shutil

from keras_arch.training import files


class RunFolder:
    """A folder with the settings, logs, checkpoints and results of one training.

        settings.json   what was asked; a resumed run must ask the same
        log.csv         one row per log point
        events/         the same for TensorBoard
        checkpoints/    see `keras_arch.training.Checkpoints`
        curves.png, samples.txt, model.keras, tokenizer/, export/   results
        report.json     figures; written last, so its presence means "finished"

    Args:
        path: folder to create or to resume.
        settings: dict of JSON values, compared with those of an earlier run.
        overwrite: True removes an earlier run first.

    Raises:
        ValueError: the folder holds something else than a run, holds a run with different
            settings, or cannot be written.
    """

    def __init__(self, path, settings, overwrite=False):
        self.path = pathlib.Path(path)
        self.settings = json.loads(json.dumps(settings))
        try:
            self.refuse_foreign()
            if overwrite and self.path.exists():
                shutil.rmtree(self.path)
            self.path.mkdir(parents=True, exist_ok=True)
            self.start_or_resume()
            for name in ("checkpoints", "events"):
                (self.path / name).mkdir(exist_ok=True)
        except OSError as error:
            raise ValueError(f"run folder {self.path} cannot be written: {error}.") from error

    def __truediv__(self, name):
        """Returns the path of `name` inside the folder."""
        return self.path / name

    def refuse_foreign(self):
        """Raises unless the path is absent, empty, or an earlier run."""
        if self.path.is_dir():
            names = [entry.name for entry in self.path.iterdir()]
            if "settings.json" in names or all(n == ".writing-settings.json" for n in names):
                return
            raise ValueError(
                f"run folder {self.path} holds other files ({', '.join(sorted(names)[:3])}) and "
                "no settings.json; choose another folder."
            )
        if self.path.exists():
            raise ValueError(f"run folder {self.path} is not a folder.")

    def start_or_resume(self):
        """Writes settings.json, or compares it with the settings of the earlier run."""
        file = self.path / "settings.json"
        if file.exists():
            earlier = json.loads(file.read_text(encoding="utf-8"))
            for key in sorted(earlier.keys() | self.settings.keys()):
                if earlier.get(key) != self.settings.get(key):
                    raise ValueError(
                        f"run folder {self.path} was started with {key}={earlier.get(key)!r}; "
                        f"received {key}={self.settings.get(key)!r}. Use the same setting to "
                        "resume, another folder, or overwrite=True to start again."
                    )
        files.write_text(file, json.dumps(self.settings, indent=2) + "\n")

    def report(self):
        """Returns the report of a finished run, or None."""
        file = self.path / "report.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
