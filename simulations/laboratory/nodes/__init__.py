"""Real processes of a coordinator and its hospitals on one machine."""
