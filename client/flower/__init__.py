"""All uses of Flower's private interfaces in a hospital's programs; README.md lists the names that are used."""
