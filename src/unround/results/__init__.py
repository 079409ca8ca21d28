"""What the public functions return: the results of the packages above, which can show, tabulate and draw themselves.

- `shown`: what all results can do: `print` as the terminal shows them, and appear in a notebook; most are tables, too
- `frames`: tables for pandas
- `one_system`: `Solution`, `Expectation`
- `tables`: about a table or an audit of one: `AuditFolder`, `Explanation`, `Posterior`, `Inspection`, `Check` …
- `described`: `Described`, about a table that comes without a description
- `publishing`: about ways of publishing: `WhatIf`, `Review`, `Protected`, `Comparison`, `Calibrations`
"""
