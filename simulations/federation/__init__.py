"""The parties of a simulation: the dealing of records to them, and the delivery of messages."""
