"""Two models on the same rows: what differs between them, with the paired interval."""
