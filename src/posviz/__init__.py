"""posviz: see how a transformer encodes position."""

__version__ = "0.1.0"
