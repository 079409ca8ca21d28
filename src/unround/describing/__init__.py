"""Describing a table that nobody described: a file or a frame is looked at, and a description drafted and verified.

- `run`: START HERE. `describe` is the whole way; `Described` is what comes out
- `layout`: where in a sheet the header is, and where the table ends
- `number_style`: how numbers are written: what groups their digits, what parts decimals, which signs stand in their place
- `roles`: which columns hold codes, names, counts, or neither
- `axes`: what the codes of rows and headers stand for; names such as "Men 0-14" taken apart
- `candidates`: sums that names suggest: totals, sexes, ages that tile another age
- `verdicts`: which of them the counts confirm, how counts were published, and which are exact
- `ages`, `words`: what ages, totals, sexes and areas are called
- `questions`: what cannot be known, and the answer if nobody is there to be asked
- `draft`, `writing`: the description as a TOML file, and what was found written into it
- `opening`: a file or frame as a table with a header
"""

from unround.describing.questions import Question
from unround.describing.run import Described, describe

__all__ = ["Described", "Question", "describe"]
