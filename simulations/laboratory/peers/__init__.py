"""Programs of others on what our runs had or made: they run from their own folders, and none of their code is here."""
