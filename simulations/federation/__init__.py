"""The parties of a simulation: how records are dealt to them, and how messages are delivered."""
