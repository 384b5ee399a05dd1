"""Two assessments told apart, and one held to what is required of it."""
