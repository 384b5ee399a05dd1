"""Studies of accuracy; each writes its page."""
