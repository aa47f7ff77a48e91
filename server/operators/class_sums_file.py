"""Reading and writing of class sums in `census.json`, with checks against the other files of its run.

The file is not signed. If it is still in its run folder, it has to agree with that folder's `privacy.json` and the
coordinator's ledger. The parties' ledgers record their answers under `run` and `plan_digest`. Bases and centres are
bit-for-bit identical to those sent to the parties.
"""

import json
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np

from common.errors import ConfigError, ProtocolError
from common.ledger.ledger import Ledger
from common.privacy import accountant
from common.queries.class_sums import ClassSums, ClassSumsSpec
from common.queries.questions import QUESTIONS
from common.validate import positive
from server.documents.class_sums import ClassSumsNumbers, QuestionnaireNumbers, Released
from server.documents.codec import FieldError, pack_floats, unpack_floats
from server.documents.files import Document, LaterFormatError
from server.documents.privacy import Earlier, Origin, Privacy
from server.operators.class_sums import NoisySums, Subspace

LEDGER = "state/ledger.db"
SETTING = "method.census"

_D = TypeVar("_D", bound=Document)
_OPEN = {"spent", "statement", "not_covered"}
"""Fields that change while a run is under way, or that express other fields in words."""
_ROUNDING = 1e-6


def numbers_of(noisy: NoisySums) -> ClassSumsNumbers:
    """Return the sums in the form in which their file stores them."""
    space = noisy.subspace
    return ClassSumsNumbers(
        labels=noisy.labels,
        sums=noisy.sums.tolist(),
        counts=noisy.counts.tolist(),
        noise=noisy.noise,
        count_noise=noisy.count_noise,
        softness=noisy.softness,
        radius=space.radius,
        basis=pack_floats(space.basis),
        centres=pack_floats(space.centres),
        questionnaire=noisy.questionnaire,
    )


def noisy_sums_of(numbers: ClassSumsNumbers) -> NoisySums:
    """Return the sums from the numbers that `numbers_of` made, even after a round trip through JSON."""
    sums = np.array(numbers.sums, dtype=np.float64)
    return NoisySums(
        labels=numbers.labels,
        sums=sums,
        counts=np.array(numbers.counts, dtype=np.float64),
        noise=numbers.noise,
        count_noise=numbers.count_noise,
        softness=numbers.softness,
        questionnaire=numbers.questionnaire,
        subspace=Subspace(
            basis=unpack_floats(numbers.basis, sums.shape[1]),
            centres=unpack_floats(numbers.centres, len(numbers.labels)),
            radius=numbers.radius,
        ),
    )


def read_noisy_sums(path: Path) -> tuple[NoisySums, Earlier]:
    """Read class sums from their file, with the guarantee of their run.

    Raises:
        ConfigError: The file does not exist, this program did not write it, or another file of its run contradicts it;
            the message names the entry.
    """
    try:
        released = _parsed(path, Released)
        noisy = _checked(ClassSumsNumbers.from_json(released.numbers), path)
    except FieldError as error:
        _refuse(f"{error.field}: {error.expected}", "none" if error.missing else "another value", path)
    privacy = released.privacy
    if not privacy.epsilon > 0:
        _refuse("privacy.epsilon: a number > 0, or inf", repr(privacy.epsilon), path)
    earlier = Earlier(run=released.run, plan_digest=released.plan_digest, encoder=released.encoder, privacy=privacy)
    if path.with_name(Privacy.FILE).exists():  # else the file was sent alone
        _check_privacy(earlier, path)
        _check_ledger(earlier, path)
    return noisy, earlier


def check_labels(noisy: NoisySums, labels: tuple[str, ...], path: Path) -> None:
    """Raise a ConfigError, with both lists, if the labels of the sums differ from the task's."""
    if noisy.labels != labels:
        raise ConfigError(
            SETTING,
            expected=f"class sums of the task's labels, in their order: {', '.join(labels)}",
            got=f"those of {', '.join(noisy.labels)}",
            where=path,
            do="Use the task of the run that asked",
        )


def check_questionnaire(numbers: QuestionnaireNumbers, path: Path) -> None:
    """Raise a ConfigError if answers are not finite, or belong to questions that this version does not have."""
    known = {question.name: set(question.answers) for question in QUESTIONS}
    if {name: set(answers) for name, answers in numbers.answers.items()} != known:
        _refuse("questionnaire.answers: those to the questions of this version", "others", path)
    counts = [*(count for answers in numbers.answers.values() for count in answers.values()), *numbers.listed.values()]
    if (
        not np.isfinite([*counts, numbers.noise, numbers.term_noise]).all()
        or min(numbers.noise, numbers.term_noise) < 0
    ):
        _refuse("questionnaire: finite numbers, and noise >= 0", "others", path)
    if bool(numbers.listed) != (numbers.first > 0):
        _refuse("questionnaire.first: a number of terms above 0, and 0 without a list", "others", path)


def _parsed(path: Path, kind: type[_D]) -> _D:
    """Return the content of a JSON file as a document of this class.

    Raises:
        ConfigError: There is no such file, or it does not contain a JSON object.
        FieldError: It contains a different document.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        _refuse(f"the {path.name} of a finished run", "no file that can be read", path)
    except (ValueError, RecursionError):
        _refuse("JSON in UTF-8", "something else", path)
    if not isinstance(content, dict):
        _refuse("a JSON object", type(content).__name__, path)
    try:
        return kind.of_file(content)
    except LaterFormatError:
        _refuse("a file of this version of Caucus, or of an earlier one", "one of a later version", path)


def _checked(numbers: ClassSumsNumbers, path: Path) -> NoisySums:
    """Return the sums with these numbers; raise a ConfigError if they do not match a query and its answer."""
    if not numbers.labels:
        _refuse("labels: a list of names", "none", path)
    try:
        noisy = noisy_sums_of(numbers)
    except (TypeError, ValueError, IndexError):
        _refuse("numbers, and float32 rows in base64, of one size", "others", path)
    if noisy.questionnaire:
        check_questionnaire(noisy.questionnaire, path)
    space, labels = noisy.subspace, len(noisy.labels)
    shapes = {"sums": (labels, len(space.basis)), "counts": (labels,)}
    for key, shape in shapes.items():
        if getattr(noisy, key).shape != shape:
            _refuse(f"{key} of shape {shape}", str(getattr(noisy, key).shape), path)
    for key in (*shapes, "noise", "count_noise", "softness"):
        value = getattr(noisy, key)
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
        positive(softness=noisy.softness)
    except (ProtocolError, ConfigError) as error:
        _refuse("what a party would accept", error.problem, path)
    return noisy


def _check_privacy(earlier: Earlier, path: Path) -> None:
    """Raise a ConfigError if the guarantee differs from the run's `privacy.json` in a field that is not in `_OPEN`."""
    beside = path.with_name(Privacy.FILE)
    try:
        of_run = _parsed(beside, Privacy)
    except FieldError as error:
        _refuse(f"{error.field}: {error.expected}, in {beside.name} next to it", "another value", path)
    said, true = earlier.privacy.to_json(), of_run.to_json()
    pairs = {f"privacy.{key}": (said.get(key), true.get(key)) for key in {**said, **true} if key not in _OPEN}
    source = of_run.earlier or Origin(
        run=earlier.run, plan_digest=of_run.plan_digest or earlier.plan_digest, encoder=earlier.encoder
    )
    pairs |= {key: (getattr(earlier, key), value) for key, value in source.to_json().items()}
    for key, (given, stated) in pairs.items():
        if given != stated:
            _refuse(
                f"{key} {json.dumps(stated):.80}, as {beside.name} next to it says", f"{json.dumps(given):.80}", path
            )


def _check_ledger(earlier: Earlier, path: Path) -> None:
    """Raise a ConfigError if the ledger has another plan, no charge for the run, or a larger epsilon than the file."""
    file = path.parent / LEDGER
    if earlier.privacy.earlier or not file.exists():
        return
    entries = Ledger(file, read_only=True).entries(earlier.run)
    plans = {entry.plan_digest.hex() for entry in entries}
    if plans != {earlier.plan_digest}:
        charged = f"charges of run {earlier.run} and plan {earlier.plan_digest:.16} in {LEDGER}"
        _refuse(charged, ", ".join(f"plan {plan:.16}" for plan in plans) or "none", path)
    try:
        spent = accountant.epsilon((entry.cost for entry in entries), earlier.privacy.delta)
    except ConfigError:
        _refuse("privacy.delta: a probability", repr(earlier.privacy.delta), path)
    if spent > earlier.epsilon * (1 + _ROUNDING):
        _refuse(f"epsilon of at least {spent:g}, as charged in {LEDGER} next to it", f"{earlier.epsilon:g}", path)


def _refuse(expected: str, got: str, path: Path) -> NoReturn:
    raise ConfigError(
        SETTING, expected=expected, got=got, where=path, do=f"Name the {Released.FILE} of a run of method=class_sums"
    )
