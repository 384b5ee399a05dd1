"""Where the scores of late and of punctual flights lie, as the noisy tally tells it."""

from importlib.resources import files

import matplotlib.pyplot as plt

import fedassay
from fedassay.metrics import ScoreHistogramDisplay

flights = files("fedassay") / "data" / "nycflights13_xgb.parquet"

result = fedassay.simulate("label", "score", data=flights, privacy="distributed", epsilon=1, seed=1)
figure, ax = plt.subplots(figsize=(7, 4))
ScoreHistogramDisplay.from_histogram(result.histogram(), name="flights", ax=ax)
