"""Planning: expected counts go through the very estimators that will read the tally."""
