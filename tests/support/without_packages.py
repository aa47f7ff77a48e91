"""A Python interpreter in which some packages are not installed."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_without(packages, code, folder, *arguments):
    """Run code in a Python interpreter without these packages; return its output.

    `folder` is created, and filled with links to all other packages.
    """
    folder.mkdir()
    left_out = re.compile(rf"({'|'.join(packages)})(-.*)?")
    for place in Path(sysconfig.get_path("purelib")).iterdir():
        if not left_out.fullmatch(place.name.removesuffix(".py")):
            (folder / place.name).symlink_to(place)
    # Without `site` no .pth file brings the real folder back.
    path = os.pathsep.join(map(str, (ROOT, folder)))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONNOUSERSITE": "1"}
    command = [sys.executable, "-S", "-c", code, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
