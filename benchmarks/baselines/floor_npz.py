"""The floor of drawing a stored stack: no torch at all."""

import sys

import numpy as np
from drawn import draw

path, out = sys.argv[1:]
with np.load(path) as stored:
    draw(stored["values"], out)
