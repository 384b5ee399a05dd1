"""What differs between groups of rows: their figures, the gaps between them, and their ratios."""

from fedassay.groups.gaps import Gap, GroupComparison, compare_groups
from fedassay.groups.histograms import GroupCounts, group_counts

__all__ = ["Gap", "GroupComparison", "GroupCounts", "compare_groups", "group_counts"]
