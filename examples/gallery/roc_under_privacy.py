"""ROC curves with 95 % bands: what 2,000 flights say under three privacy models."""

from importlib.resources import files

import matplotlib.pyplot as plt
import pyarrow.parquet as pq

import fedassay
from fedassay.metrics import RocCurveDisplay

flights = files("fedassay") / "data" / "nycflights13_xgb.parquet"

few = pq.read_table(flights).slice(0, 2000)
figure, ax = plt.subplots(figsize=(6, 6))
for privacy, epsilon in (("secure", None), ("distributed", 1), ("local", 5)):
    result = fedassay.simulate(
        "label", "score", data=few, privacy=privacy, epsilon=epsilon, steps=1, seed=1
    )
    RocCurveDisplay.from_histogram(result.histogram(), name=privacy, ax=ax)
