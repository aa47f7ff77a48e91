"""`census.json`, a census in a run folder: the released numbers, where they come from, and how to read them again.

    labels, sums, counts, noise, count_noise            as in `server.operators.census.Census`
    radius, softness
    basis, centres                                      their float32 numbers, rows one after another, as base64
    run, plan_digest, encoder                           the run that asked, and the encoder of its vectors
    privacy                                             the run's `privacy.json`: epsilon, delta, unit and all else
    statement                                           the same in a sentence

The last three lines are added by `server/run.py`. The guarantee covers whatever is made of the file, as often as one
likes. Nothing in it is signed: a run that begins with it repeats what it says, which is as true as the file is. Where
it still lies in its run folder, it has to say the same as `privacy.json` and the coordinator's ledger there. What the
parties answered is in their ledgers, under `run` and `plan_digest`. Bases and centres are bit for bit those that they
were sent.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError, ProtocolError
from common.ledger.ledger import Ledger
from common.privacy import accountant
from common.queries.class_sums import ClassSums, ClassSumsSpec
from common.validate import positive
from server.domain import Earlier
from server.operators.census import Census, Subspace

FILE, PRIVACY, LEDGER = "census.json", "privacy.json", "state/ledger.db"
"""Files of a run folder."""
SETTING = "method.census"

_PRIVACY = (
    "epsilon",
    "delta",
    "planned_epsilon",
    "adjacency",
    "mechanism",
    "queries",
    "aggregation",
    "parties",
    "assumed_colluders",
    "assumed_survivors",
    "noise_parties",
    "against_colluders",
    "simulation",
)
"""What the statement of a run that uses the numbers needs."""
_OPEN = {"spent", "statement", "not_covered"}
"""What changes while a run is under way, and what says the other figures in words."""
_ROUNDING = 1e-6


def to_dict(census: Census) -> dict[str, Any]:
    """JSON-ready form."""
    space = census.subspace
    return {
        "labels": list(census.labels),
        "sums": census.sums.tolist(),
        "counts": census.counts.tolist(),
        "noise": census.noise,
        "count_noise": census.count_noise,
        "softness": census.softness,
        "radius": space.radius,
        "basis": base64.b64encode(space.basis.astype("<f4").tobytes()).decode(),
        "centres": base64.b64encode(space.centres.astype("<f4").tobytes()).decode(),
    }


def from_dict(saved: Mapping[str, Any]) -> Census:
    """The inverse of `to_dict` after a trip through JSON."""
    labels, sums = tuple(saved["labels"]), np.array(saved["sums"], dtype=np.float64)
    return Census(
        labels=labels,
        sums=sums,
        counts=np.array(saved["counts"], dtype=np.float64),
        noise=float(saved["noise"]),
        count_noise=float(saved["count_noise"]),
        softness=float(saved["softness"]),
        subspace=Subspace(
            basis=_floats(saved["basis"], sums.shape[1]),
            centres=_floats(saved["centres"], len(labels)),
            radius=float(saved["radius"]),
        ),
    )


def read(path: Path) -> tuple[Census, Earlier]:
    """Read the file of a run folder.

    Raises:
        ConfigError: There is none, it is not as this program writes it, or another file of its run contradicts it:
            naming the entry.
    """
    saved = _object(path)
    try:
        census, earlier = _checked(saved, path), _earlier(saved, path)
    except KeyError as missing:
        _refuse(f"an entry {missing.args[0]}", "none", path)
    if (beside := path.with_name(PRIVACY)).exists():  # else the file was sent alone
        _check_privacy(earlier, beside, path)
        _check_ledger(earlier, path)
    return census, earlier


def check_labels(census: Census, labels: tuple[str, ...], path: Path) -> None:
    """Refuse a census of other labels than the task's.

    Raises:
        ConfigError: Naming both.
    """
    if census.labels != labels:
        raise ConfigError(
            SETTING,
            expected=f"a census of the task's labels, in their order: {', '.join(labels)}",
            got=f"one of {', '.join(census.labels)}",
            where=path,
            do="Use the task of the run that took it",
        )


def _object(path: Path) -> dict[str, Any]:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        _refuse(f"the {path.name} of a finished run", "no file that can be read", path)
    except (ValueError, RecursionError):
        _refuse("JSON in UTF-8", "something else", path)
    if not isinstance(saved, dict):
        _refuse("a JSON object", type(saved).__name__, path)
    return saved


def _checked(saved: Mapping[str, Any], path: Path) -> Census:
    """The census, if its numbers fit together as those of a query and its answer do."""
    if not (isinstance(saved["labels"], list) and saved["labels"] and all(type(x) is str for x in saved["labels"])):
        _refuse("labels: a list of names", type(saved["labels"]).__name__, path)
    try:
        census = from_dict(saved)
    except (TypeError, ValueError, IndexError, binascii.Error):
        _refuse("numbers, and float32 rows in base64, of one size", "others", path)
    space, labels = census.subspace, len(census.labels)
    shapes = {"sums": (labels, len(space.basis)), "counts": (labels,)}
    for key, shape in shapes.items():
        if getattr(census, key).shape != shape:
            _refuse(f"{key} of shape {shape}", str(getattr(census, key).shape), path)
    for key in (*shapes, "noise", "count_noise", "softness"):
        value = getattr(census, key)
        if not np.isfinite(value).all() or (key not in shapes and value < 0):
            _refuse(f"{key}: finite numbers{'' if key in shapes else ' >= 0'}", "others", path)
    try:
        query = ClassSums(
            spec=ClassSumsSpec(labels=labels, directions=len(space.basis), count=1),
            basis=space.basis,
            centres=space.centres,
            radius=np.array([space.radius], dtype=np.float32),
        )
        query.check(labels, space.basis.shape[1])
        positive(softness=census.softness)
    except (ProtocolError, ConfigError) as error:
        _refuse("what a party would accept", error.problem, path)
    return census


def _earlier(saved: Mapping[str, Any], path: Path) -> Earlier:
    for key, kind in {"run": str, "plan_digest": str, "encoder": str, "privacy": dict}.items():
        if not isinstance(saved[key], kind):
            _refuse(f"{key}: {'an object' if kind is dict else 'text'}", type(saved[key]).__name__, path)
    privacy = saved["privacy"]
    for key in _PRIVACY:
        if key not in privacy:
            _refuse(f"an entry privacy.{key}", "none", path)
    earlier = Earlier(run=saved["run"], plan_digest=saved["plan_digest"], encoder=saved["encoder"], privacy=privacy)
    try:
        sound = earlier.epsilon > 0
    except (TypeError, ValueError):
        sound = False
    if not sound:
        _refuse("privacy.epsilon: a number > 0, or inf", repr(privacy["epsilon"]), path)
    return earlier


def _check_privacy(earlier: Earlier, beside: Path, path: Path) -> None:
    """Refuse another guarantee than the run's own; of what was spent, the two files may say two moments."""
    own = _object(beside)
    source = own["earlier"] if isinstance(own.get("earlier"), dict) else own
    pairs = {f"privacy.{key}": (earlier.privacy.get(key), own.get(key)) for key in {**earlier.privacy, **own}}
    pairs |= {key: (getattr(earlier, key), source[key]) for key in ("run", "plan_digest", "encoder") if key in source}
    for key, (said, true) in pairs.items():
        if said != true and key.removeprefix("privacy.") not in _OPEN:
            _refuse(f"{key} {json.dumps(true):.80}, as {beside.name} beside it says", f"{json.dumps(said):.80}", path)


def _check_ledger(earlier: Earlier, path: Path) -> None:
    """Refuse what the run's charges contradict: another plan, none of this run, or a smaller epsilon than charged."""
    file = path.parent / LEDGER
    if "earlier" in earlier.privacy or not file.exists():
        return
    entries = Ledger(file, read_only=True).entries(earlier.run)
    plans = {entry.plan_digest.hex() for entry in entries}
    if plans != {earlier.plan_digest}:
        charged = f"charges of run {earlier.run} and plan {earlier.plan_digest:.16} in {LEDGER}"
        _refuse(charged, ", ".join(f"plan {plan:.16}" for plan in plans) or "none", path)
    try:
        spent = accountant.epsilon((entry.cost for entry in entries), earlier.privacy["delta"])
    except (ConfigError, TypeError):
        _refuse("privacy.delta: a probability", repr(earlier.privacy["delta"]), path)
    if spent > earlier.epsilon * (1 + _ROUNDING):
        _refuse(f"epsilon of at least {spent:g}, as {LEDGER} beside it was charged", f"{earlier.epsilon:g}", path)


def _floats(text: str, rows: int) -> NDArray[np.float32]:
    flat = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)
    return flat.reshape(rows, -1)


def _refuse(expected: str, got: str, path: Path) -> NoReturn:
    raise ConfigError(SETTING, expected=expected, got=got, where=path, do=f"Name the {FILE} of a run of method=census")
