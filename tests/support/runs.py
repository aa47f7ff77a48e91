"""Small complete runs for tests: each is a whole federation and takes about half a second."""

import csv
import functools
import json
import logging
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from server.documents.files import split
from server.prepare.compose import compose_settings, load_settings
from simulations.command import main
from simulations.run import simulate

WASP = ("method.top=3", "method.shots=4")
LOSES = "llm.most_lost=1"
"""For small runs: the built-in models lose more or fewer texts as noise chooses the exemplars."""
SMALL = (
    "method.samples=48",  # 16 in round 1: too few for an interval of their gain, which takes a third of a run
    "method.rounds=3",
    LOSES,
    *WASP,
    "task=demo_notes",
    "task.records_per_party=16",
    "task.test_records=24",
    "task.public_notes=120",
    "evaluation.metrics=[]",  # seconds to import; tests/e2e/test_measured.py has them
)


def settings(*overrides):
    """Return a small run's settings; a later override replaces an earlier one.

    If another task is set, the demo's sizes are dropped; if another method is set, WASP's own settings are dropped.
    """
    own_task, own_method = (
        any(override.startswith(f"{part}=") for override in overrides) for part in ("task", "method")
    )
    small = [setting for setting in SMALL if not (own_task and setting.startswith("task"))]
    small = [setting for setting in small if not (own_method and setting in WASP)]
    named = {override.split("=")[0].lstrip("+~") for override in overrides}
    return compose_settings([*(setting for setting in small if setting.split("=")[0] not in named), *overrides])


WORDS = ("harbour", "lantern", "meadow", "copper", "violin", "thunder", "pebble")
MORE = ("orchard", "saddle", "window", "candle", "bridge", "forest", "kettle", "gravel", "ribbon", "barrel", "pigeon")


def labelled(folder, *, train=None, test=None, public=None):
    """Write the files of a task with two labels; return the overrides that name them.

    Public texts have no private word.
    """
    folder.mkdir(parents=True, exist_ok=True)
    private = [(f"zq{i:03} qx{i % 7} vk{i % 5} jw{i % 3} zw{i:03} xk{i % 11}.", "ab"[i % 2]) for i in range(40)]
    held = [(f"The {WORDS[i % 7]} by the {MORE[i % 11]}.", "ab"[i % 2]) for i in range(10)]
    open_text = [f"The {WORDS[i % 7]} and a {MORE[i % 11]} near the old {MORE[i % 5]}." for i in range(60)]
    for name, rows in (("train", train or private), ("test", test or held)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    (folder / "public.txt").write_text("\n".join(public or open_text))
    return [
        "task=csv",
        "task.labels={a: harbour and lantern, b: kettle and forest}",
        *(f"task.{name}={folder}/{name}.csv" for name in ("train", "test")),
        f"task.public_text={folder}/public.txt",
    ]


def with_columns(folder, header, row):
    """Write the files of `labelled` again with other columns; `row` makes a row from a text and its number."""
    for name in ("train", "test"):
        with (folder / f"{name}.csv").open(newline="") as file:
            texts = [row["text"] for row in csv.DictReader(file)]
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *(row(text, number) for number, text in enumerate(texts))])


def labelled_by_sets(folder, sets):
    """Write the files of `labelled` with these sets of labels in turn; return the overrides that name the files."""
    overrides = labelled(folder)
    with_columns(folder, ("text", "labels"), lambda text, number: (text, sets[number % len(sets)]))
    return [override for override in overrides if not override.startswith("task.labels")]


def unlabelled(folder):
    """Write the files of `labelled` without a column of labels; return the overrides of the task."""
    overrides = labelled(folder)
    with_columns(folder, ("text",), lambda text, _: (text,))
    return [override for override in overrides if not override.startswith("task.labels")] + ["task.labels=unlabelled"]


def text_in_sections(number):
    """Return a text of the task of `sections_task`."""
    headings = {"Harbour": "a lantern and a pier", "Kettle": "some tea and a fire", "Meadow": "wet grass and a gate"}
    order = (("Harbour", "Kettle", "Meadow"), ("Harbour", "Meadow"), ("Kettle", "Harbour", "Meadow"))[number % 3]
    parts = (
        f"{heading}:\nThere was {headings[heading]} {number % 7}. It was seen {number % 5} times.\n"
        for heading in order
    )
    return f"zq{number:03}\n{''.join(parts)}"


def sections_task(folder):
    """Write the files of a task with sections; return the overrides that name them."""
    public = "".join(
        f'{{"text": "Harbour: A pier {i}.\\nKettle: The tea {i}.\\nMeadow: No gate {i}."}}\n' for i in range(30)
    )
    (folder / "public.jsonl").write_text(public)
    for name, count in (("train", 60), ("test", 24)):
        texts = "".join(f'"{text_in_sections(number)}"\n' for number in range(count))
        (folder / f"{name}.csv").write_text(f"text\n{texts}")
    return [
        "task=csv",
        "task.sections={Harbour: qa, kettle: qb, Meadow: qc}",
        *(f"task.{name}={folder}/{name}.csv" for name in ("train", "test")),
        f"task.public_text={folder}/public.jsonl",
    ]


def private_texts(tmp_path):
    """Return the texts that `labelled` wrote to the folder `data`."""
    with (tmp_path / "data" / "train.csv").open(newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def words_in(content, texts):
    """Return the canary words and five-word sequences of these texts that occur in `content`, given as bytes."""
    lowered = content.lower()
    wanted = set()
    for text in texts:
        words = text.split()
        wanted |= {word.strip(".") for word in words if word[:2] in ("zq", "zw")}
        wanted |= {" ".join(words[at : at + 5]) for at in range(len(words) - 4)}
    return {word for word in wanted if word.encode() in lowered}


def tiny(folder, *overrides):
    """Make a small run in this process; return its folder."""
    simulate(settings(*overrides), Path(folder))
    return Path(folder)


def resume(folder):
    """Resume a small run."""
    simulate(load_settings(folder), folder)


def lines(folder, name):
    return [json.loads(line) for line in split((folder / name).read_text("utf-8"))]


def texts(folder):
    return (folder / "synthetic.jsonl").read_bytes()


def read(folder, name):
    return json.loads((folder / name).read_text("utf-8"))


def rounds_that_add_up(folder):
    """Return the lines of rounds.jsonl of a complete run, in which each requested text was generated or lost."""
    assert read(folder, "run.json")["status"] == "complete"
    rounds = lines(folder, "rounds.jsonl")
    for line in rounds:
        for model, requested in line["requested"].items():
            assert requested == line["generated"].get(model, 0) + line["lost"].get(model, 0)
    return rounds


@functools.cache
def warm():
    """Load in advance, for all child processes, what each of them would otherwise load at its first use."""
    with tempfile.TemporaryDirectory() as folder:
        tiny(folder)


def forked(work):
    """Run `work` in a child of this process; return how it ended: its exit code, or minus the signal number."""
    warm()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
            raise
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def command(folder, *arguments):
    """Run `caucus-simulate` with these arguments in a child; return its exit code and output."""
    said = folder / "said.txt"

    def work():
        with said.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["caucus-simulate", *arguments]
        logging.getLogger().handlers.clear()
        try:
            main()
        except SystemExit as ended:
            sys.stderr.write(ended.code if isinstance(ended.code, str) else "")
            raise
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()

    return forked(work), said.read_text("utf-8")


def die():
    """End this process as `kill -9` or a power failure would: no handler runs, and nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)
