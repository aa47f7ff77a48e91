"""The two protocols that a query's page implements: a public specification, and the query with its arrays.

The plan fixes, prices and hashes the specification before any private data is accessed. The query adds the arrays that
the coordinator computes during the run. Both are frozen dataclasses. The protocols have no state, and define defaults
for what most pages share.
"""

from collections.abc import Mapping
from dataclasses import Field
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from common.errors import PlanError
from common.privacy.sensitivity import Sensitivity


class Spec(Protocol):
    """A specification. Its fields are numbers and flags, and part of the plan's digest.

    Attributes:
        kind: Name of the query.
        unproven: Whether the release has no privacy proof, however large its noise; its epsilon is then infinite.
        by_section: Whether a plan with this query takes each record section by section, with the labels as headings.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    unproven: ClassVar[bool] = False
    by_section: ClassVar[bool] = False

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Names of the mechanisms that may make the answer private; `SUMMED` if it is a sum over the parties."""
        ...

    @property
    def max_records(self) -> int:
        """m, maximum number of records per privacy unit."""
        ...

    @property
    def labels_per_record(self) -> int:
        """Maximum number of labels under which one record counts; 1 means under its first label only."""
        return 1

    @property
    def grid(self) -> int:
        """Number of integer units that one vote, record, cosine, feature or radius has in an answer."""
        ...

    @property
    def noise_grid(self) -> int:
        """Number of integer units in 1 for sensitivity and noise; only for choices by utility is it not `grid`."""
        return self.grid

    @property
    def sensitivity(self) -> Sensitivity:
        """Largest change of the answer by one privacy unit, on the grid; the specification's docstring proves it."""
        ...

    @property
    def largest(self) -> int | None:
        """Largest value that one record can add to a coordinate of a sum; None if the answer is not a sum."""
        return None

    @property
    def steps(self) -> int:
        """Number of noised sums behind one answer."""
        return 1

    def check(self, name: str, labels: int) -> None:
        """Raise PlanError if the specification has a field `labels`, and its number differs from the plan's.

        Args:
            name: Name of the query in the plan.
            labels: Number of labels in the plan.

        Raises:
            PlanError: The numbers of labels differ.
        """
        own = getattr(self, "labels", labels)
        if own != labels:
            raise PlanError(f"labels of {name}", expected=labels, got=own)


class Query(Protocol):
    """A query on the wire. Its fields are `spec`, then its arrays.

    Attributes:
        dtypes: Dtype of each array on the wire, keyed by the array's name, in the order of the fields.
        spec: The planned specification.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    dtypes: ClassVar[Mapping[str, str]] = MappingProxyType({})
    spec: Spec

    @property
    def length(self) -> int:
        """Number of coordinates in an answer."""
        ...

    def check(self, labels: int, dimensions: int) -> None:
        """Raise ProtocolError if the arrays are for labels other than the plan's or for a different encoder.

        Args:
            labels: Number of labels in the plan.
            dimensions: Dimension of the agreed encoder's vectors.

        Raises:
            ProtocolError: The arrays are for other labels or another encoder.
        """
        del labels, dimensions
