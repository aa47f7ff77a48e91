"""`caucus-party init`: creates keys, folders, a `client.yaml` that explains each limit, and the public `party.json`."""

import argparse
import json
import os
import pwd
import re
import stat
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from client import database, records
from client.deploy import known_records
from client.deploy.check_advice import advice_on_labels
from client.deploy.settings import HospitalSettings
from client.flower import proxy
from client.guard import Limits
from common.domain import Record
from common.errors import ConfigError, DataError
from common.labelled_files import check_ending
from common.rng import secure_bytes
from common.secagg.identity import Identity
from common.secagg.messages import VERSION
from common.system.commands import Commands, add_command
from common.system.enrolment import Invitation, PartyFile
from common.system.files import SECRET, check_records, whole_folder, write_atomic

HEADER = """\
# caucus-party check {folder}
# This hospital's own settings and limits. No message can change them.
name: {name}
records: {records}  # CSV, JSON Lines or Parquet with text,label, or FHIR; mode 0600; read by the party service alone
encoder: hashed_ngrams     # or minilm (caucus-party models), or a sentence-transformers folder; the same at every party
coordinator: {coordinator}  # outbound connections go here and nowhere else
proxy: {proxy}  # or http://HOST:PORT on the way there; its login, USER:PASSWORD, in node/proxy.login (0600)
bundle: {bundle}  # SHA-256 of the only bundle whose messages are passed on
approval: manual           # manual: a person approves each run's plan (caucus-party approve); auto: the limits decide
relay_user: {relay_user}  # started as root: the unprivileged account of SuperNode and relay
ledger_head: private/ledger.head  # where the ledger's head is noted; on another disk, a restored old folder is noticed
metrics_port: null         # or a port of 127.0.0.1: /metrics for this hospital's own Prometheus, open to this machine
labelled: {labelled}  # false: records of text alone, which take part in plans without labels alone
windows: null              # or average: the encoder reads all of a long text, where the plan's does; else its beginning
headings: []               # or those of the records' sections, such as [History, Findings]: for plans by sections

"""


MOST_BY_DEFAULT = 1_000
"""Maximum number of records that a hospital declares by default: the same for all hospitals, so it reveals nothing."""
BY_USER = (
    "the records name users: client.yaml has `unit: user`, which refuses plans that protect single records alone; "
    "`unit: sample` there accepts these, too"
)
MAX_RECORDS = "largest number of records that this hospital will ever have; public, as it sets the time of all answers"


def register(commands: Commands) -> None:
    """Add the `init` command."""
    parser = add_command(
        commands,
        "init",
        _init,
        summary="make this hospital's keys, settings and public file",
        description="Make a folder with keys, client.yaml with safe limits, and party.json for the coordinator.",
        example='caucus-party init hospital --name "St. Mary" --records notes.csv --invitation invitation.json',
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new folder")
    parser.add_argument("--name", required=True, help="the hospital's name, as the others will see it")
    parser.add_argument(
        "--records",
        required=True,
        type=Path,
        help=f"CSV, JSON Lines or Parquet with text,label; FHIR; or NAME{database.ENDING}, the query of a database",
    )
    parser.add_argument("--unlabelled", action="store_true", help="the records have no labels: text alone")
    parser.add_argument("--invitation", required=True, type=Path, help="invitation.json from the coordinator")
    parser.add_argument("--max-records", type=int, metavar="N", help=f"{MAX_RECORDS}; default: {MOST_BY_DEFAULT}")
    parser.add_argument("--proxy", metavar="URL", help="http://HOST:PORT, where a proxy is the only way out; no login")
    parser.add_argument("--relay-user", help="started as root: account that SuperNode and relay run as")


def _init(chosen: argparse.Namespace) -> Iterator[str]:
    folder: Path = chosen.folder
    invitation = load_invitation(chosen.invitation)
    if chosen.proxy is not None:
        proxy.check_way(chosen.proxy, invitation.address)
    account = _account(chosen.relay_user)
    if account:
        _check_outside(folder, account)
    remarks = list[str]()
    private, copy = _read(chosen, remarks)
    public, keys = new_keys(chosen.name, MOST_BY_DEFAULT if chosen.max_records is None else chosen.max_records)
    check_number(len(private), public)
    names_users = any(record.user for record in private)
    with whole_folder(folder):
        for name in ("private", "node", "logs", "run"):
            (folder / name).mkdir(mode=0o700)
        for path, key in keys.items():
            write_atomic(folder / path, key, mode=SECRET)
        write_atomic(folder / "private" / "records.key", secure_bytes(32), mode=SECRET)
        if copy is not None:
            write_atomic(folder / "private" / database.COPY, copy, mode=SECRET)
        write_atomic(folder / "node" / "ca.crt", invitation.certificate.encode(), mode=SECRET)
        header = HEADER.format(
            folder=folder,
            name=_scalar(chosen.name),
            records=_scalar(str(chosen.records.resolve()) if copy is None else f"private/{database.COPY}"),
            coordinator=_scalar(invitation.address),
            bundle=invitation.bundle,
            proxy=_scalar(chosen.proxy),
            relay_user=_scalar(chosen.relay_user),
            labelled="false" if chosen.unlabelled else "true ",
        )
        write_atomic(folder / "client.yaml", (header + sections(by_user=names_users)).encode(), mode=SECRET)
        write_atomic(folder / "party.json", public.to_json().encode())
        if account:
            _hand_over(folder, account)
        HospitalSettings.load(folder)
    yield from known_records.note(folder, chosen.records)
    yield f"keys and settings are in {folder}; send {folder / 'party.json'} to the coordinator"
    yield f"{len(private)} record{'s' * (len(private) != 1)} in {chosen.records} (known only here)"
    if names_users:
        yield BY_USER
    yield from (f"{chosen.records.name}: {remark}" for remark in remarks)
    yield from (f"WARNING: {advice}" for advice in ([] if chosen.unlabelled else advice_on_labels(private)))
    if copy is not None:
        yield f"copied into {folder / 'private' / database.COPY}: caucus-party refresh {folder} {chosen.records} later"
    yield f"public: this hospital has at most {public.max_records:,} records; --max-records declares another number"
    if chosen.proxy is not None:
        mode = f"mode 0600, owned by {chosen.relay_user}" if account else "mode 0600"
        yield f"if the proxy asks for a login: one line USER:PASSWORD in {folder / 'node' / proxy.LOGIN}, {mode}"
    yield f"fingerprint, to be compared by telephone: {public.fingerprint}"
    yield f"coordinator's fingerprint, to be compared by telephone: {invitation.fingerprint}"
    yield f"then: caucus-party roster {folder} roster.json; caucus-party check {folder}; caucus-party start {folder}"


def _read(chosen: argparse.Namespace, remarks: list[str]) -> tuple[list[Record], bytes | None]:
    """Return the records, and for those of a database the content of their copy; None for a file, which stays."""
    labelled = not chosen.unlabelled
    if database.is_query(chosen.records):
        private = database.read_database(chosen.records, labelled=labelled, remarks=remarks)
        return private, database.as_json_lines(private, labelled=labelled)
    check_records(chosen.records)
    check_ending(chosen.records)
    return records.load_records(chosen.records, may_be_empty=True, labelled=labelled, remarks=remarks), None


def load_invitation(path: Path) -> Invitation:
    """Return the invitation of a coordinator that speaks this version of the protocol.

    Raises:
        ConfigError: The file is not an invitation, or the coordinator speaks another version.
    """
    invitation = Invitation.load(path)
    if invitation.protocol != VERSION:
        do = "Install the same version of Caucus on both sides"
        raise ConfigError("invitation's protocol", expected=VERSION, got=invitation.protocol, where=path, do=do)
    return invitation


def check_number(count: int, declared: PartyFile) -> None:
    """Raise a DataError, with the declared number only, if there are more records than the hospital has declared."""
    if count > declared.max_records:
        do = "Take fewer, or declare more: caucus-party rotate --max-records N, or init with --max-records N"
        raise DataError(f"there are more records than the {declared.max_records:,} that party.json declares", do=do)


def new_keys(name: str, most: int) -> tuple[PartyFile, dict[str, bytes]]:
    """Return the public file of a hospital with at most `most` records, and its secret files' content, keyed by path.

    Raises:
        ConfigError: The name is too long or cannot be printed, or the number is out of range.
    """
    identity_key = secure_bytes(32)
    node_key = ec.generate_private_key(ec.SECP384R1())
    public_node_key = node_key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    public = PartyFile(
        name=name,
        identity=Identity(identity_key).public.hex(),
        node_key=public_node_key.decode(),
        max_records=most,
    )
    pem = node_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return public, {
        "private/identity.key": identity_key,
        "node/node.key": pem,
        "node/superexec.secret": secure_bytes(32).hex().encode(),
    }


def sections(*, by_user: bool = False) -> str:
    """Return the sections of configs/client.yaml for a new hospital: `limits`, and no writers.

    Each writer is null, with its settings in comments below it, ready to be enabled. With `by_user` the limits demand
    plans that protect each user as a whole.
    """
    text = (resources.files("configs") / "client.yaml").read_text(encoding="utf-8")
    if by_user:
        text = re.sub(r"^(  unit: )sample\b  ", r"\1user    ", text, flags=re.MULTILINE)
    _, *parts = re.split(r"^(?=[a-z_]+:)", text, flags=re.MULTILINE)
    return "".join(part if part.startswith("limits:") else _turned_off(part) for part in parts)


def shipped_limits() -> Limits:
    """Return the limits of a new hospital."""
    return Limits(**yaml.safe_load(sections())["limits"])


def _turned_off(section: str) -> str:
    name = section.partition(":")[0]
    comments = "".join(f"# {line}" for line in section.splitlines(keepends=True))
    off = f"{name + ': null':<27}# off; to turn it on, put the lines below in its place, without their first '# '\n"
    return off + comments


def _account(name: str | None) -> pwd.struct_passwd | None:
    if name is None:
        return None
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        raise ConfigError("--relay-user", expected="an account of this machine", got=name) from None
    if os.geteuid() != 0 or account.pw_uid == 0:
        do = "Run the command as root, and give an account other than root"
        raise ConfigError("--relay-user cannot be used", got=name, do=do)
    return account


def _check_outside(folder: Path, account: pwd.struct_passwd) -> None:
    """Raise a ConfigError if the relay's account could replace the whole folder, as one in its home folder."""
    groups = os.getgrouplist(account.pw_name, account.pw_gid)
    for above in {*folder.absolute().parents, *folder.resolve().parents}:
        if not above.exists():
            continue
        status = above.stat()
        writable = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid in groups)
        if status.st_uid == account.pw_uid or (writable and not status.st_mode & stat.S_ISVTX):
            do = f"Choose a folder outside of those that {account.pw_name} owns or may write"
            raise ConfigError(f"{account.pw_name} could replace the folder", got=above, where=folder, do=do)


def _hand_over(folder: Path, account: pwd.struct_passwd) -> None:
    """Let the relay's account enter the folder, own the relay's files and reach the socket, and nothing else.

    Access to the folder is granted last, so that the account cannot replace a file by a link while paths are in use
    here.
    """
    for path in (*(folder / "node").iterdir(), folder / "node"):
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    os.chown(folder / "run", -1, account.pw_gid, follow_symlinks=False)
    (folder / "run").chmod(0o750)
    folder.chmod(0o711)


def _scalar(value: str | None) -> str:
    return json.dumps(value, ensure_ascii=False) if value else yaml.safe_dump(value).split("\n")[0]
