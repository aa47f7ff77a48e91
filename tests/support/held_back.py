"""Records, control records that no run saw, and synthetic texts, of which some are copies."""

from tests.support.federations import CANARY

N = 40
"""Number of records, and of control records."""
SUBJECTS = ("cough", "fever", "ankle", "rash", "headache", "wheeze", "nausea", "bruise")


def note(number, kind):
    """Return a record of the hospital ("a") or of the control set ("b") that no other record resembles."""
    return f"{kind} {number}: a {SUBJECTS[number % 8]} since day {7 * number}, {CANARY if kind == 'a' else ''} seen"


def write(path, texts):
    """Write a file of labelled texts that no other account can read."""
    path.write_text("text,label\n" + "".join(f'"{text}",a\n' for text in texts))
    path.chmod(0o600)
    return path


def held_back(folder):
    """Write the hospital's records and the control records; return the file of the control records."""
    write(folder.parent / "notes.csv", [note(number, "a") for number in range(N)])
    return write(folder.parent / "control.csv", [note(number, "b") for number in range(N)])


def unrelated(number):
    """Return `number` texts that are unrelated to any record."""
    return [f"Unrelated text of number {place}" for place in range(number)]


def copied(folder):
    """Write a file with 15 copies of records and 15 other texts; return its path."""
    copies = [note(number, "a") for number in range(15)]
    return write(folder.parent / "synthetic.csv", [*copies, *unrelated(15)])
