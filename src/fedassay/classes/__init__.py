"""More than two classes: surveys of one-vs-rest histograms, what they cost, and their figures."""
