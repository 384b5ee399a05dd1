"""Rows come in copies: the same person twice, or people alike whose scores are the same.

Where rows fall inside a bucket by chance, each for itself, a sum over them varies by so much;
copies fall together. In a table drawn with replacement each row is there a Poisson number of times,
a row has one copy more on average, and every such sum varies by twice as much: once for where
the rows of the table lie, and once for how often each was drawn. Counts of wide buckets do not tell
copies from strangers.

Drawing is new each time, and where the rows of a table lie stays. Who asks one table again and
again sees the same luck in every interval: counted once, it is held on average over tables, and
70 % of the time where it is 2.3 deviations. So it is counted twice: such a table is held 86 %.
"""

DRAWN = 2.0
"""How many rows fall together, on average over rows: E[m^2] / E[m] of Poisson numbers of mean 1."""
COPIES = 1.0 + 2.0
"""What chance inside a bucket is multiplied by: once for drawing, twice for the table's own."""
