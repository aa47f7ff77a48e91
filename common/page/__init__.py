"""Code that the web pages of the hospitals and the coordinator share: access control, appearance and server."""
