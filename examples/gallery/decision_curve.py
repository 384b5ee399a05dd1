"""Is acting on the score better than acting on every flight, or on none?"""

from importlib.resources import files

import matplotlib.pyplot as plt

import fedassay
from fedassay.metrics import DecisionCurveDisplay

flights = files("fedassay") / "data" / "nycflights13_xgb.parquet"

result = fedassay.simulate("label", "score", data=flights, privacy="local", epsilon=5, seed=1)
figure, ax = plt.subplots(figsize=(7, 5))
thresholds = [number / 50 for number in range(1, 31)]
DecisionCurveDisplay.from_histogram(
    result.histogram(), thresholds=thresholds, name="the score", ax=ax
)
ax.set_xlim(0.0, 0.6)
