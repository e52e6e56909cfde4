"use strict";
// The stored values, unpacked: one Float32Array for all heads, NaN where a query may not look.

async function unpackValues(text, shape) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(plain).arrayBuffer());
  const cells = shape[0] * shape[1] * shape[2];
  const start = Math.ceil(cells / 8);
  const seen = (bytes.length - start) / 4;
  const values = new Float32Array(cells);
  const word = new DataView(new ArrayBuffer(4));
  for (let cell = 0, next = start; cell < cells; cell++) {
    if (bytes[cell >> 3] & (128 >> (cell & 7))) {
      values[cell] = NaN;
      continue;
    }
    for (let plane = 0; plane < 4; plane++) word.setUint8(plane, bytes[next + plane * seen]);
    values[cell] = word.getFloat32(0, true);
    next++;
  }
  return values;
}

// The shortest decimal that is this float32 and no other.
function exactly(value) {
  if (!Number.isFinite(value)) return String(value).replace("-", "\u2212");
  for (let digits = 6; digits <= 9; digits++) {
    const text = String(Number(value.toPrecision(digits)));
    if (Math.fround(Number(text)) === value) return text.replace("-", "\u2212");
  }
  return String(value);
}

function roughly(value) {
  return String(Number(value.toPrecision(3))).replace("-", "\u2212");
}
