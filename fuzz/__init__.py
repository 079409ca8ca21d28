"""Fuzzing: every reader and parser against inputs that nobody wrote on purpose. `make fuzz` runs all of it.

- `target`: what a target is; `targets` and `written`: what is tried, with inputs to start from;
- `oracle`: what must not happen, and a second reading to compare with;
- `drawn`: inputs drawn by Hypothesis, also for the test suite;
- `guided`: inputs bred by atheris, which sees what code each of them reaches;
- `load`: requests to `unround serve`, two hundred a second.
"""
