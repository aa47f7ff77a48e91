"""`caucus-party init`: keys, folders, `client.yaml` with every limit explained, and the public file `party.json`."""

import argparse
import json
import os
import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from common.errors import ConfigError
from common.rng import secure_bytes
from common.secagg.identity import Identity
from common.system.commands import add_command
from common.system.enrolment import Invitation, PartyFile
from common.system.files import SECRET, check_records, new_folder, write_atomic

YAML = """\
# caucus-party check {folder}
# This hospital's own settings and limits. No message can change them.
name: {name}
records: {records}  # CSV or JSON Lines with text,label; mode 0600; read by the party service alone
encoder: hashed_ngrams     # or the folder of a sentence-transformers model; every party must run the same
coordinator: {coordinator}  # outbound connections go here and nowhere else
bundle: {bundle}  # SHA-256 of the only bundle whose messages are passed on
approval: manual           # manual: a person approves each run's plan (caucus-party approve); auto: the limits decide
relay_user: {relay_user}  # started as root: the unprivileged account of SuperNode and relay
fine_tuning: null          # {{name_or_path: FOLDER}}: this language model learns under DP-SGD, its texts are released

limits:
  max_epsilon: 8.0           # largest ε of one run
  max_delta: 1.0e-4          # largest δ of one run: keep it below one over the number of records
  lifetime_epsilon: 10.0     # largest ε of all runs ever made, together; null: no limit
  lifetime_delta: 1.0e-4     # at this δ
  separate_data_sets: false  # true: counts only data sets that share a record; a refusal then tells whether they do
  queries:                   # kinds that are answered
    - votes
    - label histogram
    - length histogram
    - vocabulary histogram
    - density sketch
    - self-similarity
    - correct count
    - length range
    - seed choice
    - fine-tuned samples     # with fine_tuning above
  colluders: 0               # others that might tell the coordinator their noise: max_epsilon must hold even then
  max_top: 16                # largest Q
  min_survivors: 2           # fewest parties that a sum may hold: 2 or more needs secure aggregation
  min_unit_records: 1        # 1: sample level is enough; m: users with up to m records are protected as one
  malicious_coordinator: false  # true: only plans that trust the coordinator with nothing (secagg=malicious)
  security_bits: 40          # a sparse graph must let a mask be lifted with probability below 2^-40
  unsafe_unproven: false     # queries whose released text has no proof: nothing here would write them
  unsafe_no_noise: false     # true: also plans without noise, for data that is not private
"""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `init`."""
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
    parser.add_argument("--records", required=True, type=Path, help="CSV or JSON Lines with the columns text,label")
    parser.add_argument("--invitation", required=True, type=Path, help="invitation.json from the coordinator")
    parser.add_argument("--relay-user", help="started as root: account that SuperNode and relay run as")


def _init(chosen: argparse.Namespace) -> Iterator[str]:
    folder: Path = chosen.folder
    invitation = Invitation.load(chosen.invitation)
    check_records(chosen.records)
    account = _account(chosen.relay_user)
    identity_key = secure_bytes(32)
    node_key = ec.generate_private_key(ec.SECP384R1())
    public = PartyFile(
        name=chosen.name,
        identity=Identity(identity_key).public.hex(),
        node_key=node_key.public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        .decode(),
    )
    new_folder(folder)
    for name in ("private", "node", "logs", "run"):
        (folder / name).mkdir(mode=0o700)
    write_atomic(folder / "private" / "identity.key", identity_key, mode=SECRET)
    pem = node_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    write_atomic(folder / "node" / "node.key", pem, mode=SECRET)
    write_atomic(folder / "node" / "superexec.secret", secure_bytes(32).hex().encode(), mode=SECRET)
    write_atomic(folder / "node" / "ca.crt", invitation.certificate.encode(), mode=SECRET)
    settings = YAML.format(
        folder=folder,
        name=_scalar(chosen.name),
        records=_scalar(str(chosen.records.resolve())),
        coordinator=_scalar(invitation.address),
        bundle=invitation.bundle,
        relay_user=_scalar(chosen.relay_user),
    )
    write_atomic(folder / "client.yaml", settings.encode(), mode=SECRET)
    write_atomic(folder / "party.json", public.to_json().encode())
    if account:
        _hand_over(folder, account)
    yield f"keys and settings are in {folder}; send {folder / 'party.json'} to the coordinator"
    yield f"fingerprint, to be compared by telephone: {public.fingerprint}"
    yield f"coordinator's fingerprint, likewise: {invitation.fingerprint}"
    yield f"then: caucus-party roster {folder} roster.json; caucus-party check {folder}; caucus-party start {folder}"


def _account(name: str | None) -> pwd.struct_passwd | None:
    if name is None:
        return None
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        raise ConfigError("relay user", expected="an account of this machine", got=name) from None
    if os.geteuid() != 0 or account.pw_uid == 0:
        raise ConfigError("relay user", expected="to be root, and another account", got=name)
    return account


def _hand_over(folder: Path, account: pwd.struct_passwd) -> None:
    """The relay's account may pass through the folder, own its part of it and reach the socket; nothing else."""
    folder.chmod(0o711)
    for path in (folder / "node", *(folder / "node").iterdir()):
        os.chown(path, account.pw_uid, account.pw_gid)
    shutil.chown(folder / "run", group=account.pw_gid)
    (folder / "run").chmod(0o750)


def _scalar(value: str | None) -> str:
    return json.dumps(value, ensure_ascii=False) if value else yaml.safe_dump(value).split("\n")[0]
