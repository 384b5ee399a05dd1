"""Rows come in copies: the same person twice, or people alike whose scores are the same.

Where rows fall inside a bucket by chance, each for itself, a sum over them varies by so much;
copies fall together. In a table drawn with replacement each row is there a Poisson number of times,
a row has one copy more on average, and every such sum varies by twice as much: once for where
the rows of the table lie, and once for how often each was drawn. Counts of wide buckets do not tell
copies from strangers, so chance is taken twice everywhere.
"""

COPIES = 2.0
"""How many rows fall together, on average over rows: E[m^2] / E[m] of Poisson numbers of mean 1."""
