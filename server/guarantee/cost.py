"""The cost of a run's guarantee in one line, for the terminal."""

from server.documents.privacy import Privacy
from server.guarantee.case import Kind, guarantee_kind
from server.guarantee.rounding import show_delta, show_epsilon


def cost(privacy: Privacy | None) -> str:
    """Sentence on planned and spent loss; None stands for a `privacy.json` that is missing or cannot be read."""
    kind = guarantee_kind(privacy)
    if privacy is None:
        return "not known: privacy.json cannot be read"
    if kind is Kind.NONE:
        return "no guarantee (ε = ∞)"
    if kind is Kind.NOT_ASKED and not privacy.earlier:
        return "no party was asked (ε = 0)"
    planned, delta = show_epsilon(privacy.planned_epsilon), show_delta(privacy.delta)
    if privacy.earlier:
        return f"ε = {planned}, δ = {delta} of run {privacy.earlier.run}, which asked; nothing more was asked"
    spent = show_epsilon(privacy.spent.epsilon)
    return f"ε = {planned} planned and {spent} spent, δ = {delta} planned and spent"
