"""Reading the header of a safetensors file and counting what it lists."""

import json
import math
import sys

with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
header.pop("__metadata__", None)
print(len(header), "tensors,", sum(math.prod(entry["shape"]) for entry in header.values()), "numbers")
