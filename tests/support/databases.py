"""Databases of records, and the files that name a query of one."""

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path

import yaml

from common.system.processes import free_port

QUERY = 'SELECT text, label, patient AS "user" FROM notes ORDER BY id'
PASSWORD = "p@ss: %41/'\\ #ü"
"""A password with all that an address, a YAML file or a shell could take for something else."""


def definition(folder, name="notes.sql.yaml", **values):
    """Write a `.sql.yaml` file with these keys, which no other account can read; return its path."""
    path = folder / name
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(values, allow_unicode=True))
    return path


def sqlite_file(folder, *statements):
    """Make a SQLite database by these statements, each a text or a text and its values; return its path."""
    path = folder / "notes.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(*(statement if isinstance(statement, tuple) else (statement,)))
    return path


PROGRAMS = [Path(folder) for folder in sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))]
"""Folders of Debian's packages; PostgreSQL's server is in no PATH."""


def program(name):
    """Return the path of one of PostgreSQL's programs; None if there is none."""
    there = [folder / name for folder in PROGRAMS if (folder / name).exists()]
    return str(there[-1]) if there else shutil.which(name)


class PostgreSQL:
    """A running server, with a superuser that only its socket lets in."""

    def __init__(self, folder, port):
        self.socket, self.port = folder / f".s.PGSQL.{port}", port

    def execute(self, *statements, database="postgres", user="owner"):
        """Execute statements, each by itself."""
        import pg8000.dbapi

        with closing(
            pg8000.dbapi.connect(user, database=database, unix_sock=str(self.socket), ssl_context=False)
        ) as connection:
            connection.autocommit = True
            for statement in statements:
                connection.cursor().execute(statement)


@contextmanager
def postgresql(certificate=None):
    """Start a PostgreSQL that nobody else uses, as root under another account, since it refuses to run as root.

    Args:
        certificate: A folder with `server.crt` and `server.key`, for TLS; None for a server without.
    """
    account = (
        next(one for one in pwd.getpwall() if one.pw_name in {"postgres", "nobody"}) if os.geteuid() == 0 else None
    )
    other = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    folder = Path(tempfile.mkdtemp(prefix="caucus-pg-"))
    try:
        if account:
            os.chown(folder, account.pw_uid, account.pw_gid)
        how = {"cwd": folder, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        data, quick = folder / "data", ("-c", "fsync=off")
        trust = ("--auth-local=trust", "--auth-host=scram-sha-256", "--username=owner", "--no-sync")
        subprocess.run(
            [program("initdb"), "-D", data, "--encoding=UTF8", "--no-locale", *trust], check=True, **how, **other
        )
        for name in ("server.crt", "server.key") if certificate else ():
            (data / name).write_bytes((certificate / name).read_bytes())
            (data / name).chmod(0o600)
            os.chown(data / name, data.stat().st_uid, data.stat().st_gid)
        quick += ("-c", "ssl=on") if certificate else ()
        port = free_port()
        words = ("-D", data, "-k", folder, "-p", str(port), "-c", "listen_addresses=127.0.0.1", *quick)
        with subprocess.Popen([program("postgres"), *words], **how, **other) as server:
            try:
                yield _answering(PostgreSQL(folder, port), server)
            finally:
                server.terminate()
    finally:
        shutil.rmtree(folder)


def _answering(server, process):
    """Return the server once it answers."""
    import pg8000

    for _ in range(300):
        try:
            server.execute("SELECT 1")
        except pg8000.Error:
            assert process.poll() is None
            time.sleep(0.1)
        else:
            return server
    raise TimeoutError
