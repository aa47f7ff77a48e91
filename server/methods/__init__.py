"""The methods, one file each; `server/method.py` says what a method is."""
