"""The methods, one file each; `server/method.py` defines their interface."""
