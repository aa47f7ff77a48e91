"""Fixtures that several tests share: tiny models, federations, deployments, servers on loopback, contracts."""
