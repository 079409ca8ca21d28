"""Several files as one release: the same areas side by side, other areas below, every count under one name.

- `joining`: START HERE. `join` takes releases and returns one; their counts are on disk, read together, area by area
- `matching`: which columns of the files are one count, and which areas are one area
"""

from unround.join.joining import join
from unround.join.matching import Match, with_truth

__all__ = ["Match", "join", "with_truth"]
