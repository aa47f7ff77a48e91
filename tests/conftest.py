"""One thread for each test process: tests fork, and a fork of a process with a pool of threads can wait forever."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
