"""What changed between two audits of the same people: which counts are newly proved or likely. Start in `run`."""

from unround.diff.run import Diff as Diff
from unround.diff.run import diff as diff
