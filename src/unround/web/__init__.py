"""The explorer: local pages for going through an audit, or a table that was made to add up (`reconciled`).

`app.explorer_app` makes it, `serve.serve` runs it.
"""
