"""Asks a SavedModel through TensorFlow's C API, as a server does, without Python TensorFlow.

    python tools/ask_saved_model.py runs/demo/export --text "ROMEO:" --text "JULIET:"
    python tools/ask_saved_model.py model/1 --signature score --inputs '{"token_ids": [[3, 1]]}'

Prints a JSON line for each row of the answer. Needs NumPy and an installed TensorFlow, whose shared
libraries it loads by ctypes; keras_arch, Keras and Python TensorFlow stay out of the process.
"""

import argparse
import os
import sys
from pathlib import Path

from saved_model import requests
from saved_model.c_api import CApi
from saved_model.description import read_description
from saved_model.session import TAG, Session

UNWANTED = ("tensorflow", "tensorflow_text", "keras", "keras_nlp", "keras_hub", "keras_arch")


def main() -> int:
    """Returns the exit code: 0, or 1 after a message where the model cannot be asked."""
    arguments = parse_arguments()
    try:
        folder = version_folder(arguments.folder)
        description = read_description(folder, TAG)
        signature = description.signatures.get(arguments.signature)
        if signature is None:
            known = ", ".join(sorted(description.signatures)) or "none"
            raise ValueError(
                f"--signature must be one of the model's ({known}); "
                f"received {arguments.signature!r}."
            )
        if arguments.text:
            inputs = requests.from_texts(signature, arguments.text)
        else:
            inputs = requests.from_json(signature, arguments.inputs)
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow's start-up notes
        api = CApi()
        with Session(api, folder, description) as session:
            outputs = session.run(signature, inputs)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"ask_saved_model: {error}", file=sys.stderr)
        return 1
    imported = [name for name in UNWANTED if name in sys.modules]
    print(
        f"{folder} answered through the C API of TensorFlow {api.version}; "
        f"of {', '.join(UNWANTED)} this process imported {', '.join(imported) or 'none'}.",
        file=sys.stderr,
    )
    print("\n".join(requests.to_lines(outputs)))
    return 0


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder",
        type=Path,
        help="a SavedModel, or a folder of numbered versions of it: the highest is asked",
    )
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument(
        "--text",
        action="append",
        help="a text for the only input that has no default; give it many times",
    )
    asked.add_argument(
        "--inputs",
        help="a JSON object, from input name to number or (nested) list; those that have a default "
        "in the signature may be left out",
    )
    parser.add_argument("--signature", default="serving_default", help="which endpoint to ask")
    return parser.parse_args()


def version_folder(folder: Path) -> Path:
    """The folder that holds saved_model.pb: this one, or its version with the highest number.

    Raises ValueError if there is none.
    """
    if not folder.is_dir():
        raise ValueError(f"the folder {folder} does not exist.")
    if (folder / "saved_model.pb").is_file():
        return folder
    versions = [path for path in folder.iterdir() if path.name.isdecimal() and path.is_dir()]
    if not versions:
        raise ValueError(f"{folder} is not a SavedModel: no saved_model.pb and no version folder.")
    newest = max(versions, key=lambda path: int(path.name))
    if not (newest / "saved_model.pb").is_file():
        raise ValueError(f"{newest} is not a SavedModel: no saved_model.pb.")
    return newest


if __name__ == "__main__":
    sys.exit(main())
