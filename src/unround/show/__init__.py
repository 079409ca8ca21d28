"""Everything a person sees, in one place: terminal, report, comparison pages and explorer say and show the same things.

words        the sentences, numbers, plurals and names of kinds that all of them use
palette      the colours, light and dark; the stylesheet's tokens are made from it
counts       counts in the rows of tables, as HTML
charts       every chart, as a small SVG drawing; plots: charts as files (`--plot`)
site         the one Jinja environment and the one stylesheet; templates/ and static/ hold what they load
notebook     results as cards of a notebook; figures: charts to work with there (Altair)
report, strongest, check, selfcheck, nesting, keys, diff, whatif, compare
             what one topic says and shows, for terminal and pages alike
terminal/    what each command prints
"""
