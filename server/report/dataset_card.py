"""The description of the texts in a published folder: `Card`, and the page that is made from it.

The folder is public, so it contains nothing else from a run's documents: neither figures, some of which are computed
from private records, nor names of hospitals, paths or settings.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from common.domain import is_one_population
from common.page.words import catalogue
from server.documents.codec import strict
from server.documents.privacy import Privacy
from server.documents.run import RunSummary
from server.domain import Candidate, has_label_sets
from server.guarantee.case import Kind, guarantee_kind
from server.guarantee.messages import fill_in
from server.guarantee.words import Guarantee, guarantee_card
from server.report.write import render

SYNTHETIC, TRANSFER = "synthetic", "transfer"
"""Names of the parts of a published folder, as subfolders, hubs' configurations, and record sets of Croissant."""
SPLIT = "train"
"""The only split of each part."""
PARQUET, JSON_LINES = f"{SPLIT}.parquet", f"{SPLIT}.jsonl"
"""The two files of a part; both have the same rows."""
MARKED = {"spans": "type", "sections": "heading"}
"""Columns that are lists of objects, each with `start`, `end`, and a field of this name; public texts have none."""
_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_SIZE_NAMES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "n>10M")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Statements on a published data set that only a person can make.

    Attributes:
        license: Licence of the synthetic texts: an identifier that hubs use, or the address of the licence's text.
        public_license: Licence of the public texts, in the same form. If None, the public texts are left out.
        language: Code of the texts' language, such as "en"; None if not stated.
        creator: Name of the organization that publishes the texts; None if not stated.
        repository: Name of the repository on a hub, OWNER/NAME; None if not stated.
    """

    license: str
    public_license: str | None = None
    language: str | None = None
    creator: str | None = None
    repository: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Everything that a published folder says about its texts.

    Attributes:
        run: The run, of which task, method, day, purpose, models and encoder are shown, but never its
            hospitals.
        privacy: The run's guarantee.
        guarantee: The guarantee in words.
        terms: Statements of the person who publishes the texts.
        published: Day of the publication.
        collection: Sentences that say how the texts were made.
        labels: The labels with their public descriptions, in the order of the column `probabilities`; empty if there
            are none.
        texts: Number of synthetic texts.
        public_texts: Number of public texts.
        columns: Names of the columns of the synthetic texts.
        attested: Sentence that says who attests the guarantee.
    """

    run: RunSummary
    privacy: Privacy
    guarantee: Guarantee
    terms: Terms
    published: dt.date
    collection: str
    labels: Mapping[str, str | None]
    texts: int
    public_texts: int
    columns: Sequence[str]
    attested: str

    @property
    def several(self) -> bool:
        """Whether a text may have several labels, or sections under several headings."""
        return not {"labels", "sections"}.isdisjoint(self.columns)

    @property
    def name(self) -> str:
        """Name of the data set."""
        return f"{self.run.task}: synthetic texts"

    def columns_of(self, part: str) -> list[str]:
        """Return the names of the columns of a part; nobody marks spans or sections in public texts."""
        return [name for name in self.columns if name not in MARKED or part == SYNTHETIC]


def card(
    run: RunSummary,
    privacy: Privacy,
    terms: Terms,
    *,
    texts: Sequence[Candidate],
    public: Sequence[Candidate],
    published: dt.date,
) -> Card:
    """Return the card, which takes from a run's documents only what may be published.

    The public texts are empty if they are left out.
    """
    say = catalogue(__package__)
    labels = run.labels or dict.fromkeys(sorted({text.label for text in texts}))
    absent = set() if any(text.probabilities for text in [*texts, *public]) else {"probabilities"}
    absent |= {"label"} if has_label_sets(texts) else {"labels"}
    if not run.spans:
        absent |= {"spans"}
    absent |= {"labels"} if any(text.sections for text in texts) else {"sections"}
    if is_one_population(labels):
        labels, absent = {}, absent | {"label"}
    return Card(
        run=run,
        privacy=privacy,
        guarantee=guarantee_card(privacy),
        terms=terms,
        published=published,
        collection=fill_in(say.collection, run=run, privacy=privacy, kind=guarantee_kind(privacy)),
        labels=labels,
        texts=len(texts),
        public_texts=len(public),
        columns=[name for name in vars(say.columns) if name not in absent],
        attested=fill_in(say.attested, privacy=privacy),
    )


def card_rows(texts: Sequence[Candidate], columns: Sequence[str], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return the texts as rows of the published files; `labels` are in the order of the column `probabilities`."""
    rows = []
    for text in texts:
        row = {name: strict(getattr(text, name)) for name in columns}
        if "probabilities" in row and text.probabilities is not None:
            row["probabilities"] = [text.probabilities.get(label, 0.0) for label in labels]
        rows.append(row)
    return rows


def page(shown: Card) -> str:
    """Return `README.md`: the metadata that hubs read, and the card for people."""
    metadata = yaml.safe_dump(_metadata(shown), sort_keys=False, allow_unicode=True, width=1000)
    return render("dataset.md", card=shown, metadata=metadata, descriptions=vars(catalogue(__package__).columns))


def _metadata(shown: Card) -> dict[str, Any]:
    """Return the metadata in the vocabulary of Hugging Face's hub."""
    terms, parts = shown.terms, [SYNTHETIC, *[TRANSFER] * bool(shown.public_texts)]
    given = {
        "pretty_name": shown.name,
        **_license(terms),
        "language": terms.language and [terms.language],
        "size_categories": [_SIZE_NAMES[sum(shown.texts >= size for size in _SIZES)]],
        "task_categories": [
            "text-classification" if shown.labels else "text-generation",
            *["token-classification"] * bool(shown.run.spans),
        ],
        "annotations_creators": ["machine-generated" if shown.labels or shown.run.spans else "no-annotation"],
        "language_creators": ["machine-generated", *["found"] * bool(shown.public_texts)],
        "tags": ["synthetic", *["differential-privacy"] * (shown.guarantee.kind is Kind.BOUNDED)],
        "configs": [
            {
                "config_name": part,
                **({"default": True} if part == SYNTHETIC else {}),
                "data_files": [{"split": SPLIT, "path": f"{part}/{PARQUET}"}],
            }
            for part in parts
        ],
    }
    return {name: value for name, value in given.items() if value}


def _license(terms: Terms) -> dict[str, Any]:
    """Return the metadata on licences: identifiers, or "other" with a link to the first licence that is an address."""
    names = [name for name in (terms.license, terms.public_license) if name]
    if link := next(filter(is_address, names), None):
        return {"license": "other", "license_name": "stated-below", "license_link": link}
    return {"license": names[0] if len(set(names)) == 1 else names}


def is_address(name: str) -> bool:
    """Return whether a licence is given by the address of its text."""
    return name.startswith("https://")
