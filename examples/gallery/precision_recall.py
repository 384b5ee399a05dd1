"""Precision and recall of 20,000 flights at epsilon 1, beside those of the rows themselves."""

from importlib.resources import files

import matplotlib.pyplot as plt
import pyarrow.parquet as pq

import fedassay
from fedassay.metrics import PrecisionRecallDisplay

flights = files("fedassay") / "data" / "nycflights13_xgb.parquet"

some = pq.read_table(flights).slice(0, 20_000)
result = fedassay.simulate("label", "score", data=some, privacy="distributed", epsilon=1, seed=1)
figure, ax = plt.subplots(figsize=(6, 5))
PrecisionRecallDisplay.from_histogram(result.histogram(), name="distributed", ax=ax)
labels, scores = some["label"].to_numpy(), some["score"].to_numpy()
PrecisionRecallDisplay.from_predictions(labels, scores, name="rows", ax=ax, linestyle="--")
ax.legend(loc="upper right")
