"""Bugs planted on purpose, kept as data, and the tests that must notice each (see README.md)."""
