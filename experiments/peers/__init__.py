"""What others do for the same figures, written from their publications.

Each works in its own trust model; `python -m experiments.peers` holds ours beside it in the same
one and writes `experiments/peers.md`. Rows come as counts of label x distinct score, ascending.
"""
