#!/bin/sh
# Installs Caucus from the wheels next to this file into a new folder, without a network.
#
#   ./install.sh FOLDER [PYTHON]   FOLDER: such as /opt/caucus; PYTHON: python@PYTHON@ if not given
#
# Every file is compared with SHA256SUMS, and pip compares every wheel with requirements.txt once more.
set -eu

fail() { echo "install.sh: $*" >&2; exit 2; }

[ $# -eq 1 ] || [ $# -eq 2 ] || fail "expected: FOLDER [PYTHON]"
here=$(cd "$(dirname "$0")" && pwd) folder=$1 python=${2:-python@PYTHON@}
[ ! -e "$folder" ] || fail "folder: expected a new one, got one that exists, in $folder. Nothing is overwritten"
command -v "$python" >/dev/null || fail "Python: expected $python, got none. Name one of version @PYTHON@: ./install.sh FOLDER PYTHON"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$version" = "@PYTHON@" ] || fail "Python: expected @PYTHON@, for which these wheels are; got $version, from $python"
(cd "$here" && sha256sum --check --quiet --strict SHA256SUMS) || fail "wheels: expected those of SHA256SUMS. Copy them again"
trap 'rm -rf "$folder"' EXIT # of what is half done nothing is left
"$python" -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links "$here" --require-hashes \
    --requirement "$here/requirements.txt"
"$folder/bin/caucus-party" --version
trap - EXIT
