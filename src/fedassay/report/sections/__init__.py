"""The sections of the report page, each a function of the same material."""
