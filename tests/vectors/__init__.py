"""Test vectors of the formats: files that every client, in any language, must reproduce.

`python -m tests.vectors.make` makes them anew, with fresh noise; docs/formats.md says what is in
them.
"""
