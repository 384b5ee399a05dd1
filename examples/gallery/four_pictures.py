"""The four pictures of a validation, in one figure: ROC, calibration, decisions, scores."""

from importlib.resources import files

import fedassay

flights = files("fedassay") / "data" / "nycflights13_xgb.parquet"

result = fedassay.simulate("label", "score", data=flights, privacy="distributed", epsilon=1, seed=1)
figure = result.plot(name="flights").figure_
