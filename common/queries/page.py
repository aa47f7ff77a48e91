"""What the page of each query states: a public specification, and the query with its arrays.

The plan fixes, prices and hashes the specification before anything private is touched. The query adds what the
coordinator learns to ask about during the run, as arrays. Both are frozen dataclasses. The protocols hold no state, and
give the usual answer to what most pages need not say.
"""

from collections.abc import Mapping
from dataclasses import Field
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from common.privacy.sensitivity import Sensitivity


class Spec(Protocol):
    """A specification. Its fields are numbers and flags, and part of the plan's digest.

    Attributes:
        kind: Name of the query.
        unproven: What is released has no proof, whatever the noise; it costs infinity.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    unproven: ClassVar[bool] = False

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Names of the mechanisms that may make the answer private; `SUMMED` if it is a sum over the parties."""
        ...

    @property
    def max_records(self) -> int:
        """m, the records that one privacy unit may hold."""
        ...

    @property
    def grid(self) -> int:
        """Integer units of an answer in one vote, record, cosine or feature."""
        ...

    @property
    def noise_grid(self) -> int:
        """Integer units in which sensitivity and noise are given: the answer's, except in a choice by utility."""
        return self.grid

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one privacy unit can move the answer, on the grid; its proof is in the page's docstring."""
        ...

    @property
    def largest(self) -> int | None:
        """Largest value that one record can add to a coordinate of a sum; None if the answer is not a sum."""
        return None

    @property
    def steps(self) -> int:
        """Noised sums behind one answer."""
        return 1

    def check(self, name: str, labels: int) -> None:
        """Refuse a specification for another number of labels than the plan has.

        Args:
            name: Name of the query in the plan.
            labels: Number of labels in the plan.

        Raises:
            PlanError: It is for another number.
        """
        del name, labels


class Query(Protocol):
    """A query in the form in which it is asked. Its fields are `spec`, then its arrays.

    Attributes:
        dtypes: Of each array, in the order of the fields, as it travels.
        spec: The planned specification.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    dtypes: ClassVar[Mapping[str, str]] = MappingProxyType({})
    spec: Spec

    @property
    def length(self) -> int:
        """Coordinates of an answer."""
        ...

    def check(self, labels: int, dimensions: int) -> None:
        """Refuse arrays that are for other labels than the plan's, or for another encoder than the agreed one.

        Args:
            labels: Number of labels in the plan.
            dimensions: Of the agreed encoder's vectors.

        Raises:
            ProtocolError: They are.
        """
        del labels, dimensions
