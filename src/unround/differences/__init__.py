"""What changed between two audits of the same people: which counts are newly proved or likely. Start in `run`."""

from unround.differences.run import Diff as Diff
from unround.differences.run import diff as diff
