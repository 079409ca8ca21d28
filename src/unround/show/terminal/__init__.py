"""What each command prints: one module per command, with the sentences that the pages use too."""
