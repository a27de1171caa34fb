#!/bin/bash
# numpy.sh FOLDER: makes a virtual environment in FOLDER, if it is not there, and installs NumPy into it.
set -euo pipefail

environment=$1
[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
"$environment/bin/python" -c 'import numpy' 2>/dev/null ||
    "$environment/bin/pip" install --quiet --disable-pip-version-check numpy
