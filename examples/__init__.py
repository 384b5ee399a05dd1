"""Things to copy and things to run."""
