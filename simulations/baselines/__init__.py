"""What the methods are measured against: baselines that use the private records without any protection."""
