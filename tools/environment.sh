# Sourced by the other scripts: makes .venv beside this folder and installs the project into it.
# A stamp in .venv remembers what was installed, so that a second call takes no time.
# shellcheck shell=bash

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
environment="$repository/.venv"
python="$environment/bin/python"

export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-2}"  # TensorFlow's start-up notes

# TensorFlow has builds for these versions; `python3` comes first, for it is the user's choice.
find_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "keras-arch needs Python 3.11, 3.12 or 3.13 on the PATH;" \
        "python3 is $(python3 --version 2>&1 || true)." >&2
    return 1
}

make_environment() {
    local found
    if [[ ! -x "$environment/bin/pip" ]]; then
        found=$(find_python)
        echo "Making $environment with $("$found" --version)."
        "$found" -m venv "$environment"
    fi
}

install_project() {
    local extras="jax,recipes,checkpoints,dev" stamp="$environment/installed" wanted
    wanted="$(cksum <"$repository/pyproject.toml") [$extras] $repository"
    if [[ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]]; then
        echo "Installing keras-arch with the extras $extras (some minutes, once)."
        "$python" -m pip install --quiet --editable "${repository}[$extras]"
        echo "$wanted" >"$stamp"
    fi
}

install_torch() {
    if ! "$python" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))'; then
        echo "Installing PyTorch (some minutes, once)."
        "$python" -m pip install --quiet torch==2.13.0
    fi
}
