"""What runs at a hospital: its own service, and the relay that Flower's messages pass through."""
