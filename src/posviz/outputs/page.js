// The page: a grid of heads, what is under the pointer, and one head enlarged.

const byId = (id) => document.getElementById(id);
const about = JSON.parse(byId("about").textContent);
const [headCount, rows, columns] = about.shape;
const tables = about.maps.map((map) => readTable(map.table));
const panels = []; // one for each head: { canvas, bar, most, least }
let values = null;
let large = null; // the enlarged head's panel, with { index, row, column, cross }

function make(tag, className, parent) {
  const element = document.createElement(tag);
  element.className = className;
  parent.append(element);
  return element;
}

function makePlot(parent) {
  const map = make("span", "map", parent);
  const canvas = make("canvas", rows < 256 ? "coarse" : "", map);
  [canvas.width, canvas.height] = [columns, rows];
  const side = make("span", "bar", parent);
  const bar = make("canvas", "", side);
  [bar.width, bar.height] = [1, 256];
  const labels = make("span", "", side);
  return { map, canvas, bar, side, most: make("span", "", labels), least: make("span", "", labels) };
}

function valuesOf(index) {
  return values.subarray(index * rows * columns, (index + 1) * rows * columns);
}

function spreadOf(index) {
  const own = about.limits[index];
  if (own[0] === null) return null;
  let [low, high] = own;
  let positive = about.leastPositive[index];
  if (about.scale === "shared") {
    const some = about.limits.filter((limits) => limits[0] !== null);
    [low, high] = [Math.min(...some.map((l) => l[0])), Math.max(...some.map((l) => l[1]))];
    const positives = about.leastPositive.filter((least) => least !== null);
    positive = positives.length ? Math.min(...positives) : null;
  }
  return spreadOver(low, high, positive, about.maps[about.chosen].centred, about);
}

function drawPlot(plot, index) {
  const spread = spreadOf(index);
  const table = tables[about.chosen];
  paint(plot.canvas, valuesOf(index), spread, table);
  plot.side.hidden = !spread;
  if (!spread) return;
  const ramp = Float32Array.from({ length: 256 }, (_, n) => (255 - n) / 255);
  paint(plot.bar, ramp, { share: (x) => x }, table);
  plot.most.textContent = roughly(spread.high);
  plot.least.textContent = roughly(spread.low);
}

function drawAll() {
  panels.forEach(drawPlot);
  if (large) drawPlot(large, large.index);
}

function positions(cell, length) {
  const first = cell * about.cell;
  const last = Math.min(first + about.cell, length) - 1;
  return first === last ? String(first) : `${first}\u2013${last}`;
}

function token(cell, length) {
  if (about.cell > 1 || about.tokens.length !== length) return "";
  return ` ${JSON.stringify(about.tokens[cell])}`;
}

function describe(index, row, column) {
  const value = valuesOf(index)[row * columns + column];
  const [queries, keys] = about.lengths;
  const where = [
    `Head ${about.heads[index]}`,
    `query ${positions(row, queries)}${token(row, queries)}`,
    `key ${positions(column, keys)}${token(column, keys)}`,
    `distance ${String((row - column) * about.cell).replace("-", "\u2212")}`,
  ];
  if (about.cell > 1) where[3] = `distance about ${where[3].slice(9)}`;
  const what = Number.isNaN(value) ? "masked" : exactly(value);
  const label = about.reduced ? `${about.reduced} ` : "";
  return `${where.join(", ")}: ${label}${what}`;
}

function cellUnder(event, canvas) {
  const box = canvas.getBoundingClientRect();
  const inside = (at, size, count) => Math.min(count - 1, Math.max(0, Math.floor((at / size) * count)));
  return [
    inside(event.clientY - box.top - canvas.clientTop, canvas.clientHeight, rows),
    inside(event.clientX - box.left - canvas.clientLeft, canvas.clientWidth, columns),
  ];
}

function buildGrid() {
  about.heads.forEach((head, index) => {
    const button = make("button", "head", byId("grid"));
    button.type = "button";
    button.setAttribute("aria-label", `Head ${head}, enlarge`);
    make("span", "name", button).textContent = `Head ${head}`;
    const plot = makePlot(make("span", "plot", button));
    const read = (event) => {
      byId("readout").textContent = describe(index, ...cellUnder(event, plot.canvas));
    };
    plot.canvas.addEventListener("pointermove", read);
    plot.canvas.addEventListener("pointerdown", read);
    button.addEventListener("click", (event) => {
      // A key press has no place on the canvas: it opens the head at its first cell.
      const cell = event.detail && event.target === plot.canvas ? cellUnder(event, plot.canvas) : [0, 0];
      openLarge(index, ...cell);
    });
    panels.push(plot);
  });
}

function openLarge(index, row, column) {
  byId("large-plot").replaceChildren();
  large = { ...makePlot(byId("large-plot")), index, row, column };
  large.cross = make("div", "cross", large.map);
  large.canvas.tabIndex = 0;
  large.canvas.setAttribute("role", "img");
  large.canvas.addEventListener("pointermove", (event) => moveTo(...cellUnder(event, large.canvas)));
  large.canvas.addEventListener("pointerdown", (event) => moveTo(...cellUnder(event, large.canvas)));
  if (!byId("large").open) byId("large").showModal();
  fitLarge();
  showHead(index);
  large.canvas.focus();
}

function showHead(index) {
  large.index = (index + headCount) % headCount;
  byId("large-title").textContent = `Head ${about.heads[large.index]}`;
  large.canvas.setAttribute("aria-label", `Head ${about.heads[large.index]}, heatmap of queries down and keys right`);
  drawPlot(large, large.index);
  moveTo(large.row, large.column);
}

// As large as the window allows, in whole pixels per cell where there are enough of them.
function fitLarge() {
  if (!large) return;
  const room = Math.max(160, Math.min(window.innerWidth - 130, window.innerHeight - 240));
  const longest = Math.max(rows, columns);
  const perCell = room >= longest ? Math.floor(room / longest) : room / longest;
  const size = (count) => `${count * perCell * Math.floor(longest / count)}px`;
  [large.canvas.style.width, large.canvas.style.height] = [size(columns), size(rows)];
  moveTo(large.row, large.column);
}

function moveTo(row, column) {
  large.row = Math.min(rows - 1, Math.max(0, row));
  large.column = Math.min(columns - 1, Math.max(0, column));
  const [high, wide] = [large.canvas.clientHeight / rows, large.canvas.clientWidth / columns];
  const around = 2;
  Object.assign(large.cross.style, {
    left: `${large.canvas.clientLeft + large.column * wide - around}px`,
    top: `${large.canvas.clientTop + large.row * high - around}px`,
    width: `${wide + 2 * around}px`,
    height: `${high + 2 * around}px`,
  });
  byId("large-readout").textContent = describe(large.index, large.row, large.column);
}

function onKey(event) {
  const by = event.shiftKey ? 10 : 1;
  const moves = { ArrowUp: [-by, 0], ArrowDown: [by, 0], ArrowLeft: [0, -by], ArrowRight: [0, by] };
  if (moves[event.key]) moveTo(large.row + moves[event.key][0], large.column + moves[event.key][1]);
  else if (event.key === "PageUp") showHead(large.index - 1);
  else if (event.key === "PageDown") showHead(large.index + 1);
  else return;
  event.preventDefault();
}

function connect() {
  const controls = byId("controls").elements;
  about.maps.forEach((map, index) => {
    controls.map.add(new Option(map.name + (map.centred ? ", zero in the middle" : ""), String(index)));
  });
  [controls.scale.value, controls.map.value, controls.log.checked] = [about.scale, String(about.chosen), about.log];
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("controls").addEventListener("change", () => {
    [about.scale, about.chosen, about.log] = [controls.scale.value, Number(controls.map.value), controls.log.checked];
    drawAll();
  });
  byId("previous").addEventListener("click", () => showHead(large.index - 1));
  byId("next").addEventListener("click", () => showHead(large.index + 1));
  byId("close").addEventListener("click", () => byId("large").close());
  byId("large").addEventListener("keydown", onKey);
  byId("large").addEventListener("click", (event) => {
    if (event.target === byId("large")) byId("large").close(); // the backdrop
  });
  byId("large").addEventListener("close", () => {
    const button = panels[large.index].canvas.closest("button");
    large = null;
    button.focus();
    requestAnimationFrame(() => button.focus()); // the browser may give the focus back to the head that was opened
  });
  window.addEventListener("resize", fitLarge);
}

async function start() {
  byId("made").hidden = !byId("command").textContent;
  const cell = about.cell > 1 ? ` Each cell is ${about.cell} x ${about.cell} positions (${about.reduced}).` : "";
  byId("note").textContent = `Queries run down, keys run right, both from 0; blank cells are masked.${cell}`;
  buildGrid();
  connect();
  if (typeof DecompressionStream === "undefined") {
    byId("readout").textContent = "This browser is too old to unpack the values; any from 2023 on will do.";
    return;
  }
  values = await unpackValues(byId("values").textContent, about.shape);
  drawAll();
  document.documentElement.dataset.ready = "yes";
}

start();
