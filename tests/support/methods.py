"""A method of which only the plan matters."""


class Asking:
    """A method that asks these queries."""

    name = "asking"

    def __init__(self, *queries):
        self.queries = queries

    def plan(self, *_):
        return self.queries
