"""The explorer: a local page for going through an audit. `app.explorer_app` makes it, `serve.serve` runs it."""
