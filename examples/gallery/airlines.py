"""Sixteen airlines, each with noise of its own, and what a seventeenth may expect."""

from importlib.resources import files

import fedassay

flights = files("fedassay") / "data" / "nycflights13_xgb.parquet"

result = fedassay.simulate(
    "label", "score", data=flights, clients="carrier", privacy="site", epsilon=1, steps=1, seed=1
)
figure = result.plot_sites("roc_auc").figure_
