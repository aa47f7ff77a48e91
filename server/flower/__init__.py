"""All uses of Flower's private interfaces in the coordinator's programs; README.md lists their names."""
