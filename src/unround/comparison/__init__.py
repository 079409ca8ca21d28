"""Ways of publishing side by side: how far off each is, what each gives away, and what of that is true. Start in `run`.

- `material`: what they are compared on, simulated or the user's own
- `practice`: ways of publishing: mechanisms, small changes to today's practice, and counts that stand in several tables
- `attack`: what somebody infers from a release; under noise within stated ranges
- `measure`: the numbers by which a release is judged: its errors, measured and in closed form, and ε
"""

from unround.comparison.material import Material as Material
from unround.comparison.material import from_release as from_release
from unround.comparison.material import simulated as simulated
from unround.comparison.practice import DEFAULT as DEFAULT
from unround.comparison.practice import TODAY as TODAY
from unround.comparison.practice import WHAT_IFS as WHAT_IFS
from unround.comparison.practice import Practice as Practice
from unround.comparison.practice import cell_key_designs as cell_key_designs
from unround.comparison.practice import practice as practice
from unround.comparison.practice import what_if as what_if
from unround.comparison.run import Comparison as Comparison
from unround.comparison.run import compare as compare
