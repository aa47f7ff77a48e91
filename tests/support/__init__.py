"""What several tests set up: tiny models, federations, deployments, servers on loopback, contracts."""
