"""Rewrites the table and the page of a sweep, for instance after a run was resumed, and prints the table.

python -m simulations.sweeps SWEEP_FOLDER
"""

import sys
from pathlib import Path

from common.system.commands import escape_unknown_letters
from simulations.sweeps.render import write_table

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m simulations.sweeps SWEEP_FOLDER")
    escape_unknown_letters()
    write_table(Path(sys.argv[1]))
