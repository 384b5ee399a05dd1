"""Scores that are too low, and what a calibrator fitted to the tally makes of them."""

from importlib.resources import files

import matplotlib.pyplot as plt
import pyarrow.parquet as pq

import fedassay
from fedassay.calibration import CalibrationDisplay

flights = files("fedassay") / "data" / "nycflights13_xgb.parquet"

table = pq.read_table(flights)
labels, scores = table["label"].to_numpy(), table["score"].to_numpy() ** 2  # now too low
result = fedassay.simulate(labels, scores, privacy="distributed", epsilon=1, seed=1)
figure, ax = plt.subplots(figsize=(6, 6))
histogram = result.histogram()
CalibrationDisplay.from_histogram(histogram, name="before", ax=ax)
CalibrationDisplay.from_histogram(histogram, calibrator=result.calibrate(), name="after", ax=ax)
