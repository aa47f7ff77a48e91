"""`caucus-party audit`: whether synthetic texts disclose this hospital's records more often than held-back ones.

Before its first run, the hospital draws control records at random and holds them back. Their file has the format of the
file of records, and `client.yaml` never names it. `client/disclosures/learning.py` explains what is tested and what no
such test can detect. The result is stored in the hospital's folder as private/disclosures.json, mode 0600; nothing
leaves the hospital. Texts are never shown.
"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client import records
from client.approval.entries import approvals, path_of
from client.deploy.settings import HospitalSettings
from client.disclosures import features, learning
from client.disclosures.learning import Learning, Promise
from client.releases import ReceivedRelease, release
from common.domain import Record
from common.errors import CaucusError, ConfigError, MissingPackageError
from common.labelled_files import named_by, read_records, read_texts
from common.personal_patterns import LANGUAGES
from common.redaction import entities
from common.system.commands import Commands, add_command, add_folder
from common.system.files import SECRET, check_records, write_atomic
from common.system.log_lines import now

NOT_SEEN = (
    "not seen: what no feature shows, such as a style or a translation; records whose text occurs more than once;",
    "          any leak, if the control records were not held back at random. Nothing found proves no privacy",
)
MOST_SEARCHED = 1000
"""Maximum number of texts that are searched for personal information, a few milliseconds for each."""
_WIDTH = max(map(len, features.FEATURES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Result of the audit of a release; all numbers are private.

    Attributes:
        when: Time, ISO 8601 in UTC.
        texts: Number of synthetic texts.
        records, control: Numbers of records and of control records that were compared.
        left_out: Number of records of both kinds that were left out because their text occurs more than once.
        learning: Tests of whether the texts depend on the records at all ("no learning"), one for each feature.
        epsilon, delta: The tested ε and δ; None if no guarantee was tested.
        promise: Tests of the guarantee (ε, δ), one for each feature.
        language: Language whose patterns of personal information were searched for in the texts.
        searched: Number of texts that were searched, evenly spread over all; 0 if the patterns are not installed.
        personal: Number of these texts in which something looks like personal information.
        kinds: Number of these texts, keyed by kind of personal information.
    """

    when: str
    texts: int
    records: int
    control: int
    left_out: int
    learning: Sequence[Learning]
    epsilon: float | None
    delta: float | None
    promise: Sequence[Promise]
    language: str
    searched: int
    personal: int
    kinds: Mapping[str, int]

    @property
    def fewest(self) -> int:
        """The smallest number of disclosed records that any feature can find."""
        return learning.fewest(self.records, self.control, features=len(self.learning))

    @property
    def problem(self) -> CaucusError | None:
        """The error if a test rejects its hypothesis, that is, if the texts disclose records; otherwise None."""
        learned = [test.feature for test in self.learning if test.rejected]
        broken = [test.feature for test in self.promise if test.rejected]
        if not learned and not broken:
            return None
        return CaucusError(
            "the texts disclose records" + (" beyond the guarantee" if broken else ""),
            expected="each feature as often of control records",
            got=", ".join(dict.fromkeys(learned + broken)),
            do="Do not release them before somebody has read the texts next to the records",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAudit:
    """An audit that was made: its result, lines on features that could not be tested here, and the result's file."""

    audit: Audit
    untested: tuple[str, ...]
    path: Path


def register(commands: Commands) -> None:
    """Add the `audit` command."""
    parser = add_command(
        commands,
        "audit",
        _audit,
        summary="whether synthetic texts disclose records more often than control records; exit code 1 if they do",
        description="Compare synthetic texts with this hospital's records and with control records that it held back "
        "at random before any run, in five features. The result stays in private/disclosures.json, and nothing leaves.",
        example="caucus-party audit hospital synthetic.jsonl --control control.csv --epsilon 4 --delta 1e-5",
    )
    add_folder(parser, "caucus-party")
    texts = parser.add_mutually_exclusive_group(required=True)
    texts.add_argument(
        "texts", metavar="TEXTS", type=Path, nargs="?", help="synthetic texts: .jsonl or .csv with text, or .txt"
    )
    texts.add_argument(
        "--run",
        metavar="NAME",
        help="in place of TEXTS: the release of this run that the coordinator sent; epsilon and delta are its plan's",
    )
    parser.add_argument(
        "--control", metavar="FILE", type=Path, required=True, help="control records, in the format of the records"
    )
    parser.add_argument("--epsilon", type=float, help="test also the guarantee of the run with this epsilon, up to 15")
    parser.add_argument("--delta", type=float, help="delta of that guarantee")
    parser.add_argument(
        "--language",
        choices=LANGUAGES,
        default=LANGUAGES[0],
        help="language of the texts, for patterns of personal information",
    )


def _audit(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    epsilon, delta = chosen.epsilon, chosen.delta
    sent = release(settings.private, chosen.run) if chosen.run else None
    if sent and epsilon is None and delta is None:
        epsilon, delta = guarantee_of(settings, sent)
    texts = sent.path if sent else chosen.texts
    made = audit_release(settings, texts, chosen.control, epsilon=epsilon, delta=delta, language=chosen.language)
    problem = made.audit.problem
    yield "No test found that the texts disclose records." if problem is None else "The texts disclose records."
    yield from _lines(made.audit)
    yield from made.untested
    yield from NOT_SEEN
    yield f"the result is in {made.path}; it holds private counts and is for this hospital alone"
    if problem:
        raise problem


def guarantee_of(settings: HospitalSettings, sent: ReceivedRelease) -> tuple[float, float] | tuple[None, None]:
    """Return ε and δ of the plan of a release that the coordinator sent; None and None if they cannot be tested."""
    for entry in approvals(settings.private):
        plan = entry.read_plan()
        of_release = path_of(settings.private, entry.run, entry.plan_digest).stem == sent.path.stem
        if plan and of_release and plan.epsilon <= learning.LARGEST_EPSILON:
            return plan.epsilon, plan.delta
    return None, None


def audit_release(
    settings: HospitalSettings,
    texts_file: Path,
    control_file: Path,
    *,
    epsilon: float | None,
    delta: float | None,
    language: str = LANGUAGES[0],
) -> ReleaseAudit:
    """Compare synthetic texts with the records and with control records, and store the result.

    With `epsilon` and `delta`, that guarantee is tested as well. `language` is one of
    `common.personal_patterns.LANGUAGES`.

    Raises:
        CaucusError: A file cannot be read, is open to others or has too few records, or a value is out of range.
    """
    if (epsilon is None) != (delta is None):
        raise ConfigError("the guarantee to test lacks epsilon or delta", do="Give both, or neither")
    if epsilon is not None and delta is not None:
        learning.promise_p_value(0, 0, pairs=0, epsilon=epsilon, delta=delta)  # refuses wrong ones at once
    check_records(settings.records)
    check_records(control_file)
    training = settings.read_records()
    with named_by("--control"):
        control = read_records(control_file, labelled=settings.labelled)
    with named_by("synthetic texts"):
        texts = read_texts(texts_file)
    kept, kept_control = learning.unique_sequences(
        [record.text for record in training], [record.text for record in control]
    )
    pool = [training[place] for place in kept] + [control[place] for place in kept_control]
    flags, untested = _flags(settings, pool, texts)
    tests, promise = learning.learning(flags, len(kept)), list[Promise]()
    if epsilon is not None and delta is not None:
        promise = learning.promise(flags, len(kept), epsilon=epsilon, delta=delta)
    searched = () if untested else texts[:: max(1, math.ceil(len(texts) / MOST_SEARCHED))]
    kinds_by_text = [set(entities(text, language)) for text in searched]
    made = Audit(
        when=now(),
        texts=len(texts),
        records=len(kept),
        control=len(kept_control),
        left_out=len(training) + len(control) - len(pool),
        learning=tests,
        epsilon=epsilon,
        delta=delta,
        promise=promise,
        language=language,
        searched=len(searched),
        personal=sum(map(bool, kinds_by_text)),
        kinds=dict(sorted(Counter(kind for kinds in kinds_by_text for kind in kinds).items())),
    )
    path = settings.private / "disclosures.json"
    write_atomic(path, (json.dumps(asdict(made), indent=2) + "\n").encode(), mode=SECRET)
    return ReleaseAudit(audit=made, untested=tuple(untested), path=path)


def _flags(
    settings: HospitalSettings, pool: Sequence[Record], texts: Sequence[str]
) -> tuple[dict[str, NDArray[np.bool_]], list[str]]:
    """Flag the disclosed records for each feature; also return a line for each feature that cannot be tested."""
    untested = []
    try:
        features.personal_values("")
    except MissingPackageError as error:
        untested.append(f"{features.FEATURES[0]:{_WIDTH}}  not tested: {error}")
    encoder = settings.loaded_encoder()
    nearness = features.nearest(records.embed_records(pool, encoder).vectors, encoder.encode(texts))
    personal = None if untested else features.personal_values
    records_of_pool = [record.text for record in pool]
    return features.flag_disclosed(records_of_pool, texts, personal=personal, nearness=nearness), untested


def _lines(audit: Audit) -> Iterator[str]:
    n, m, tested = audit.records, audit.control, len(audit.learning)
    yield f"{audit.texts} texts, {n} records, {m} control records; {audit.left_out} whose text occurs more than once"
    yield "are left out. These and all counts below are known only here."
    yield f"{'disclosed by the texts':{_WIDTH}}  records  control  p if nothing was learned"
    for test in audit.learning:
        verdict = "rejected: they disclose records" if test.rejected else "not rejected"
        yield f"{test.feature:{_WIDTH}}  {test.training:7}  {test.control:7}  {test.p:.2g}, {verdict}"
    if audit.searched:
        kinds = "".join(f", {kind} {number}" for kind, number in audit.kinds.items())
        yield f"personal information by {audit.language} patterns: in {audit.personal} of {audit.searched} texts{kinds}"
    yield f"no feature can find fewer than {audit.fewest} disclosed records"
    if audit.epsilon is None or audit.delta is None:
        return
    yield f"{f'epsilon {audit.epsilon:g}, delta {audit.delta:g}':{_WIDTH}}    pairs  reverse  p if the guarantee holds"
    for row in audit.promise:
        verdict = "rejected: the run cannot have kept it" if row.rejected else "not rejected"
        yield f"{row.feature:{_WIDTH}}  {row.right:7}  {row.wrong:7}  {row.p:.2g}, {verdict}"
    least = learning.fewest_pairs(min(n, m), features=tested, epsilon=audit.epsilon, delta=audit.delta)
    yield (
        f"no feature can reject it by fewer than {least} of {min(n, m)} pairs"
        if least
        else f"no feature can reject it by {min(n, m)} pairs, whatever the texts are"
    )
