"""Picture of a sweep over epsilon: the accuracy of each row's texts, and of a census's released statistics alone.

    python -m simulations.laboratory.sweep_picture SWEEP_FOLDER FILE.svg --note TEXT

Each row of the sweep is called "NAME epsilon VALUE"; a row without an epsilon becomes a horizontal line. The sweep
needs `evaluation.metrics=[utility_encoder] evaluation.model=tfidf`, which measure the accuracies in the two plots.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

from common.errors import CheckpointError
from server.report.plots import Lines
from simulations.laboratory.pictures import Span, by_epsilon, picture
from simulations.sweeps.runs import runs_of

FIGURES = {"on the encoder's vectors": "utility encoder: accuracy", "on TF-IDF": "synthetic: accuracy"}
"""Name of the figure that each plot shows, keyed by the words for the classifier's features in the plot's title."""
_NUMBERS = "released classifier: accuracy"  # shown beside the texts on the encoder's vectors
_EPSILON = " epsilon "


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(prog="sweep_picture", description=__doc__.split("\n", 1)[0])
    parser.add_argument("sweep", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--note", default="", help="text below the picture")
    options = parser.parse_args(arguments)
    options.file.write_text(draw(options.sweep, note=options.note), encoding="utf-8")


def draw(sweep: Path, *, note: str) -> str:
    """Return the picture as SVG.

    An error bar extends one standard deviation over the seeds on either side of the mean.

    Raises:
        CheckpointError: The folder has no run with an accuracy and an epsilon.
    """
    runs = runs_of(sweep)
    accuracies: dict[tuple[str, str, str], list[float]] = {}  # by line, figure and epsilon, in percent
    for row, figures in zip(runs["row"], runs["figures"], strict=True):
        name, _, epsilon = str(row).partition(_EPSILON)
        lines_of = dict.fromkeys(FIGURES.values(), name) | {_NUMBERS: f"{name}, numbers alone"}
        for figure, line in lines_of.items():
            if isinstance(figures, dict) and figure in figures:
                shown = FIGURES["on the encoder's vectors"] if figure == _NUMBERS else figure
                accuracies.setdefault((line, shown, epsilon), []).append(100 * figures[figure])
    places = list(dict.fromkeys(epsilon for _, _, epsilon in accuracies if epsilon))
    if not places:
        raise CheckpointError("sweep folder", expected="runs with accuracies, by epsilon", where=sweep)
    spans = {key: _span(values) for key, values in accuracies.items()}
    names = list(dict.fromkeys(line for line, _, _ in accuracies))
    return picture(
        "Accuracy against ε",
        [[_plot(said, figure, places, names, spans) for said, figure in FIGURES.items()]],
        note=note,
    )


def _plot(
    said: str, figure: str, places: Sequence[str], names: Sequence[str], spans: dict[tuple[str, str, str], Span]
) -> Lines:
    of_lines = {name: [spans.get((name, figure, at), spans.get((name, figure, ""))) for at in places] for name in names}
    return by_epsilon(
        figure.split(maxsplit=1)[0],
        f"Accuracy on real texts, %: {said}",
        epsilons=places,
        values={name: [span and fmean(span) for span in line] for name, line in of_lines.items()},
        intervals=of_lines,
        including=[end for span in spans.values() for end in span],
    )


def _span(accuracies: Sequence[float]) -> Span:
    """Return the ends of an error bar that extends one standard deviation on either side of the mean."""
    mean, deviation = fmean(accuracies), stdev(accuracies) if len(accuracies) > 1 else 0.0
    return mean - deviation, mean + deviation


if __name__ == "__main__":
    main()
