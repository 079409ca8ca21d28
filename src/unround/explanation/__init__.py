"""The argument for one cell of an audit: what was published, what follows, and why."""
