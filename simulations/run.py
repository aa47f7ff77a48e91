"""A whole federation on one machine, with the same code that hospitals and coordinator run.

1. Complete the configuration and write it into the run folder.
2. Start the parties: in this process (`engine=local`) or behind a Unix socket (`engine=flower`).
3. Run the ServerApp over a Grid: Flower's interface within this process, or Flower's simulation engine on Ray.
4. Simulation only: compare the texts with the private records (`private_evaluation/compare.py`), and write the report
   again. With `refuse_disclosures` the run is refused if the texts disclose records, or if this could not be tested.
   `traffic.json` contains the bytes sent and received, if the run was in this process and was not resumed.

`simulations/launch.py` is the command line around it.
"""

import logging
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from flwr.app import Context, RecordDict

from client.app import relay
from client.channel import SOCKET_NAME
from common.errors import CaucusError, CheckpointError
from common.system.extras import needs
from common.system.files import SECRET, only_for_owner
from server.app import app as server_app
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.run import REFUSED, TEXTS, RunSummary, Traffic
from server.failure import LOG, sole_process
from server.prepare.compose import check_simulation, store, stored_run
from server.report.write import RELEASE, write_report
from server.run_folder import read_candidates
from server.settings.schema import Settings, SimulationSettings
from simulations.baselines import private_exemplars, unprotected
from simulations.federation import inputs, parties
from simulations.federation.local_grid import LocalGrid
from simulations.federation.measured import with_promise, with_records
from simulations.private_evaluation.compare import compare

log = logging.getLogger("caucus.simulation")

WITHOUT_PRIVACY = {
    unprotected.ONLY_PRIVATE: unprotected.only_private,
    private_exemplars.NAME: private_exemplars.private_exemplars,
}
"""Baselines that use the private records themselves and ask no party, keyed by name
(`simulations/baselines/unprotected.py`)."""


OUTPUTS = (TEXTS, Metrics.FILE, Privacy.FILE, RELEASE, "report.html", "report.json")
"""Files that a run replaces; where no run made them, they are somebody's own."""


@only_for_owner()
def simulate(settings: Settings, folder: Path) -> None:
    """Run one federation, or resume the run in `folder`. Only their owner can open the files that it makes.

    Raises:
        CheckpointError: The folder contains another run, or files of no run that this one would replace.
        FolderInUseError: Another process is working in the folder.
    """
    with sole_process(folder):
        if (folder / LOG).exists():
            (folder / LOG).chmod(SECRET)  # one that was there stays open otherwise, and counts private records
        _simulate(settings, folder)


def _simulate(settings: Settings, folder: Path) -> None:
    there = RunSummary.load_if_there(folder)
    yours = [name for name in OUTPUTS if (folder / name).exists()]
    run_there = there.run if there else stored_run(folder)  # a run that was killed may have texts and no run.json yet
    if run_there not in {None, settings.run} and (there or yours):
        raise CheckpointError(
            "run folder",
            expected="a new one",
            got="one that holds another run",
            where=folder,
            do=f"Run caucus-simulate --resume {folder} to go on with that, or choose another hydra.run.dir",
        )
    if yours and run_there is None:
        do = "Move this file, or choose another hydra.run.dir"
        raise CheckpointError("run folder", expected="a new one", got=f"{yours[0]} of no run", where=folder, do=do)
    parties.party_settings(check_simulation(settings).client)  # a wrong limit is refused before a record is read
    run = parties.prepare_settings(check_simulation(settings), folder)
    inputs.check_inputs(run, folder)
    store(run, folder)  # from here on the run can be resumed
    if baseline := WITHOUT_PRIVACY.get(run.method.name):
        baseline(run, folder)
    else:
        (_in_process if run.engine == "local" else _on_ray)(run, folder)
        _compare(run, folder)
    if run.refuse_disclosures and Metrics.load(folder).disclosed != "":
        replace(RunSummary.load(folder), status=REFUSED).save(folder)
        write_report(folder)
    log.info("done: %s", folder / "report.html")


def _in_process(settings: SimulationSettings, folder: Path) -> None:
    services = parties.parties(settings, folder)
    client_app = relay(lambda context: services[int(context.node_config["partition-id"])])
    grid = LocalGrid(client_app, len(services), workers=os.cpu_count() or 1)
    resumed = (folder / "state" / "state.json").exists()
    server_app(grid, _context(folder))
    if resumed:
        (folder / f"{Traffic.FILE}.part").unlink(missing_ok=True)  # the run may have been killed while it wrote this
    else:
        traffic = Traffic(
            parties=len(services), bytes_to_parties=grid.bytes_sent, bytes_from_parties=grid.bytes_received
        )
        traffic.save(folder)


def _on_ray(settings: SimulationSettings, folder: Path) -> None:
    needs("engine flower", "ray", extra="simulation")
    # By default Flower sends telemetry and looks for updates; workers inherit the environment.
    os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    # Neither Flower's internals nor Ray's tip about accelerators matter to readers of the log.
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    logging.getLogger("flwr").setLevel(logging.WARNING)
    logging.getLogger("flwr").handlers.clear()  # what it warns of goes to the run's log and would be shown twice
    with tempfile.TemporaryDirectory() as short:  # a Unix socket's path may have 107 characters
        socket = Path(short) / "party"
        command = [sys.executable, "-m", "simulations.federation.host", str(folder), str(socket)]
        bars = {"TQDM_DISABLE": "1"}  # the terminal is this process's
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | bars) as host:
            try:
                if not host.stdout or host.stdout.readline() != "ready\n":
                    raise CaucusError("the party service has ended", where=folder / "parties.log", do="Read this log")
                os.environ[SOCKET_NAME] = f"unix:{socket}"
                _flower(settings.federation.parties, folder)
            finally:
                host.terminate()


def _flower(count: int, folder: Path) -> None:
    from flwr.serverapp import Grid, ServerApp
    from flwr.simulation import run_simulation

    from client.app import app as client_app

    # The engine gives the ServerApp an empty run configuration: this one names the run folder.
    wrapper = ServerApp()

    @wrapper.main()
    def main(grid: Grid, _: Context) -> None:
        server_app(grid, _context(folder))

    run_simulation(wrapper, client_app, num_supernodes=count)


def _context(folder: Path) -> Context:
    return Context(
        run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config={"run-folder": str(folder.resolve())}
    )


def _compare(settings: SimulationSettings, folder: Path) -> None:
    measured = with_promise(with_records(settings, read_candidates(folder)), folder)
    if measured.test and measured.private:
        compare(folder, measured)
