"""Figures of a stack of heads, in the look of the paper."""
