// From values to colours, step for step as the figures do it: in single precision, 256 colours, masked is white.

function readTable(text) {
  const table = new Uint32Array(256);
  for (let n = 0; n < 256; n++) {
    const [red, green, blue] = [0, 2, 4].map((at) => parseInt(text.substr(6 * n + at, 2), 16));
    table[n] = (255 << 24) | (blue << 16) | (green << 8) | red;
  }
  return table;
}

function apart(low, high) {
  if (high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high))) return [low, high];
  const room = 0.1 * Math.abs(high) || 0.1;
  return [low - room, high + room];
}

// The range that a head's colours span, and the share of it that a value reaches.
function spreadOver(low, high, leastPositive, centred, about) {
  if (about.log && !centred && low >= 0 && high > 0) {
    const least = low > 0 ? low : Math.min(leastPositive ?? high, high);
    [low, high] = apart(Math.max(least, high * 10 ** -about.logDecades), high);
    const [from, to] = [Math.log10(low), Math.log10(high)];
    return { low, high, share: (x) => (Math.log10(Math.min(Math.max(x, low), high)) - from) / (to - from) };
  }
  if (centred) [low, high] = [-1, 1].map((sign) => sign * Math.max(Math.abs(low), Math.abs(high)));
  [low, high] = apart(low, high);
  if (about.log) {
    const bent = bentLog(about.linearShare * Math.max(Math.abs(low), Math.abs(high)));
    const [from, to] = [bent(low), bent(high)];
    return { low, high, share: (x) => (bent(x) - from) / (to - from) };
  }
  const [from, width] = [Math.fround(low), Math.fround(high - low)];
  return { low, high, share: (x) => Math.fround(Math.fround(x - from) / width) };
}

// Logarithmic on both sides of zero, linear within the threshold.
function bentLog(threshold) {
  const linear = 1 / (1 - 0.1);
  return (x) => {
    const size = Math.abs(x);
    if (size <= threshold) return x * linear;
    return Math.sign(x) * threshold * (linear + Math.log10(size / threshold));
  };
}

function colourOf(share, table) {
  if (share !== share) return 0xffffffff;
  const at = Math.fround(share * 256);
  return table[at < 0 ? 0 : at >= 256 ? 255 : Math.trunc(at)];
}

function paint(canvas, values, spread, table) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  if (spread) for (let n = 0; n < values.length; n++) pixels[n] = colourOf(spread.share(values[n]), table);
  else pixels.fill(0xffffffff);
  context.putImageData(image, 0, 0);
}
