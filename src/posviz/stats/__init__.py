"""What can be said of a head in numbers. Numpy only: everything is read off a `HeadStack`."""

from posviz.stats.distance import Profile, profile
from posviz.stats.shares import VarianceShares, variance_shares
from posviz.stats.summary import HeadStats, head_stats
from posviz.stats.table import format_comparison, format_table

__all__ = [
    "HeadStats",
    "Profile",
    "VarianceShares",
    "format_comparison",
    "format_table",
    "head_stats",
    "profile",
    "variance_shares",
]
