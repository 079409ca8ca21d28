"""The records behind a simulated census, one row per person, and tables published from them.

- `attributes`: what is known of a person, and the values it can have
- `law`: households and their people are drawn, in areas that differ; START HERE
- `counting`: which persons a column counts, and all counts of many columns at once
- `tables`: the tables that are published, and their totals
- `write`: files on disk: persons.parquet, a table and its description each, and a note that all of it is invented
"""
