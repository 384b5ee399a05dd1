"""A whole federation in one process, from a scored table."""
