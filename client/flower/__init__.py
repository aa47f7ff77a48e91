"""All uses of Flower's private interfaces in a hospital's programs; server/flower/README.md lists their names."""
