"""What the pages in a browser share, a hospital's and the coordinator's: who may see one, its look, and its server."""
