"""The tests. What is set here reaches every worker, and every process that a test starts, before numpy is loaded."""

import os

# The tests run side by side already. Threads of numpy's own would only wait for each other: with them, an audit of 120 areas
# takes ten times as much processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
