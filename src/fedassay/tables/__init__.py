"""Scored tables: reading and writing."""
