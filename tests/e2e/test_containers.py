"""From nothing to a joint data set in containers, by the Dockerfile, compose.yaml and lay_out.sh that users have.

A coordinator and two hospitals, each in two halves; the steps are those that lay_out.sh prints. `make test-containers`;
minutes, several gigabytes of disk, and root.
"""

import json
import re
import shutil
import ssl
import tempfile
import time
from pathlib import Path

import httpx
import pytest

from common.versions import DISTRIBUTION
from server.tasks import demo_notes
from simulations.laboratory.nodes.deployment import wait, write_records
from tests.support import containers
from tests.support.containers import BASE, DEPLOYMENT, ROOT, SERVICES, SUBNET, Containers
from tests.support.deployed import SMALL
from tests.support.faults import measured
from tests.support.runs import lines

pytestmark = pytest.mark.containers

HOSPITALS = (0, 1)
SERVICE, RELAY = ([f"hospital{number}-{half}" for number in HOSPITALS] for half in ("service", "relay"))
DOCKERFILE = DEPLOYMENT / "Dockerfile"
RUNNING = ["coordinator", *SERVICE, *RELAY]


@pytest.fixture(scope="module")
def engine():
    """An engine that has the image."""
    if reason := containers.missing():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="caucus-containers-", dir="/var/tmp"))
    folder.chmod(0o711)
    made = Containers(folder)
    try:
        for what, make in (
            ("base image", made.make_base),
            ("wheels", made.make_wheels),
            ("a hospital's image", lambda: made.build(ROOT, DOCKERFILE, "caucus")),
            ("the coordinator's", lambda: made.build(ROOT, DOCKERFILE, "caucus-coordinator", "EXTRAS=[coordinator]")),
        ):
            started = time.monotonic()
            make()
            measured(what, started)
        images = (BASE, "caucus", "caucus-coordinator")
        sizes = ", ".join(f"{image} {made.size(image) / 1e6:.0f} MB" for image in images)
        measured("images", time.monotonic(), sizes)
        yield made
    finally:
        made.ended()


def steps(output):
    return re.findall(r"^.*(podman compose .*)$", output, re.MULTILINE)


@pytest.fixture(scope="module")
def federation(engine):
    """Coordinator and hospitals, enrolled and running; the step that approves a plan, of each hospital."""
    started = time.monotonic()
    engine.podman("network", "create", "--subnet", SUBNET, "federation")
    (up,) = steps(engine.lay_out("coordinator", "coordinator").stdout)
    engine.step(up)
    commands = []
    for number in HOSPITALS:
        notes = demo_notes.private_notes(number, 16, 0)
        records = write_records(engine.folder / f"notes{number}.csv", notes)
        commands.append(steps(engine.lay_out("hospital", number, f"Hospital {number}", records).stdout))
    wait(lambda: engine.healthy("coordinator"), "the coordinator is healthy")
    for enrol, *_ in commands:
        engine.step(enrol)
    for _, fetch, roster, up, _ in commands:
        engine.step(fetch)
        assert "add --yes to take the roster" in engine.step(roster, code=2)
        engine.step(roster, "--yes")
        engine.step(up)
    for name in RUNNING:
        wait(lambda name=name: engine.healthy(name), f"{name} is healthy")
    measured("from nothing to five healthy containers", started)
    return [approve for *_, approve in commands]


def test_a_hospital_s_image_is_small_and_has_no_torch(engine):
    assert engine.size("caucus") < 700e6
    installed = engine.podman("run", "--rm", "--network=none", "caucus", "pip", "list", "--format=freeze").stdout
    names = {line.partition("==")[0] for line in installed.splitlines()}
    assert DISTRIBUTION in names
    assert not names & {"torch", "anthropic", "openai", "pandas", "ray", "scikit-learn", "spacy"}


def test_nothing_but_code_comes_into_the_image(engine, tmp_path):
    shutil.copy(ROOT / ".dockerignore", tmp_path)
    (tmp_path / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nCOPY . /context\n")
    code = {"pyproject.toml", "server/app.py", "client/app.py", "configs/client.yaml"}
    kept_out = {".git/config", ".venv/x", ".env", "tests/x.py", "runs/first/x", "data/records.csv", "shared/x"}
    kept_out |= {"server/__pycache__/app.pyc", "notes.csv", "hospital/private/identity.key"}
    kept_out |= {"configs/deployment/hospital0/private/identity.key", "configs/deployment/records0/notes.csv"}
    for name in code | kept_out:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    engine.build(tmp_path, tmp_path / "Dockerfile", "context")
    listing = engine.podman(
        "run", "--rm", "--network=none", "context", "find", "/context", "-type", "f", "-printf", "%P\\n"
    ).stdout
    assert set(listing.split()) == code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected: coordinator HOST"),
        (("coordinator", "host:9443"), "without a port"),
        (("hospital", "first", "Name", "notes.csv"), "expected a number"),
        (("hospital", "7", "Name", "/nowhere.csv", "/nowhere.json"), "expected an existing one"),
        (("hospital", "7", "Name", "compose.yaml", "compose.yaml"), "expected JSON"),
    ],
)
def test_wrong_words_leave_no_folder(engine, words, message):
    ended = engine.lay_out(*words, code=2)
    (line,) = ended.stderr.splitlines()
    assert message in line
    assert sorted(path.name for path in engine.here.glob("*7*")) == []


def test_a_folder_is_never_overwritten(engine, federation):
    before = (engine.here / "coordinator" / "ca.key").read_bytes()
    assert "Nothing is" in engine.lay_out("coordinator", "coordinator", code=2).stderr
    assert (engine.here / "coordinator" / "ca.key").read_bytes() == before


def test_two_hospitals_reach_a_joint_data_set(engine, federation):
    started = time.monotonic()
    caucus = "podman compose exec -T coordinator caucus-coordinator"
    output = engine.step(f"{caucus} run --yes /coordinator first", *SMALL, code=1)
    assert "awaiting approval" in output.splitlines()[-1]
    for approve in federation:
        engine.step(approve, "--yes")
    output = engine.step(f"{caucus} resume /coordinator first")
    measured("run, approval, resume", started)
    assert "report:   /coordinator/runs/first/report.html" in output.splitlines()
    made = lines(engine.here / "coordinator" / "runs" / "first", "synthetic.jsonl")
    assert len(made) >= 48
    assert all(record["text"] for record in made)


def test_from_outside_there_is_the_front_door_alone(engine, federation):
    trust = ssl.create_default_context(cafile=engine.here / "coordinator" / "ca.crt")
    assert httpx.get("https://127.0.0.1:9443/health", verify=trust).status_code == 200
    assert httpx.post("https://127.0.0.1:9443/v1/control/list-runs", verify=trust).status_code == 404


def test_a_relay_reads_neither_records_nor_keys_nor_ledger(engine, federation):
    for number, relay in zip(HOSPITALS, RELAY, strict=True):
        assert engine.podman("exec", relay, "ls", "/records", code=2).stdout == ""
        seen = engine.inside(relay, "find", "/hospital", "-type", "f").split()
        assert not [path for path in seen if re.search(r"identity|ledger|audit|service\.log|roster", path)]
        # And if it had the whole folders, its account could not.
        secret = [f"/hospital/private/{name}" for name in ("identity.key", "ledger.db", "audit.jsonl")]
        secret += ["/hospital/client.yaml", "/hospital/logs/service.log", f"/records/notes{number}.csv"]
        mounts = [f"--volume={engine.here}/{name}{number}:/{name}" for name in ("hospital", "records")]
        for user, read in (("0:0", secret), ("10002:10002", [])):
            script = 'for path; do cat "$path" >/dev/null 2>&1 && echo "$path"; done; true'
            words = ("--rm", "--network=none", *mounts, "--user", user, "caucus", "sh", "-c", script, "-", *secret)
            assert engine.podman("run", *words).stdout.split() == read


def test_health_is_that_of_what_runs_inside(engine, federation):
    name = SERVICE[0]
    (child,) = {entry["process"] for entry in _children(engine.here / "hospital0" / "run" / "service.json")}
    engine.inside(name, "bash", "-c", f"kill -STOP {child}")
    try:
        assert not engine.healthy(name)
        assert engine.healthy(RELAY[0])
    finally:
        engine.inside(name, "bash", "-c", f"kill -CONT {child}")
    wait(lambda: engine.healthy(name), "the service answers again")


def _children(note):
    content = json.loads(note.read_text())
    return content.get("children", content).values()


def test_a_service_without_a_roster_ends_with_code_2_and_one_line(engine, federation):
    records = write_records(engine.folder / "notes2.csv", demo_notes.private_notes(2, 16, 0))
    engine.lay_out("hospital", 2, "Hospital 2", records)
    start = " ".join(SERVICES["hospital2-service"]["command"])
    output = engine.step(f"podman compose run --rm -T hospital2-service {start}", code=2)
    (line,) = output.splitlines()
    assert "roster.json" in line


def test_containers_that_are_stopped_end_with_code_0(engine, federation):
    started = time.monotonic()
    engine.podman("stop", "--time", "60", *RUNNING)
    measured("stopped", started)
    assert {name: engine.state(name)["State"]["ExitCode"] for name in RUNNING} == dict.fromkeys(RUNNING, 0)
