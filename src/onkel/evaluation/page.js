"use strict";
// Charts, sorting, and the choice of light or dark. A learner is shown or hidden on the whole page at once.

const hidden = new Set();  // names of learners
const charts = [];

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const breakable = (name) => name.split(/(?<=[a-z])(?=[A-Z])/).map(escaped).join("<wbr>");
const clip = (value, low, high) => Math.min(Math.max(value, low), high);
const place = (value) => value.toFixed(1);

function tag(name, attributes, content = "") {
  const words = Object.entries(attributes).map(([key, value]) => ` ${key}="${value}"`);
  return `<${name}${words.join("")}>${content}</${name}>`;
}

function element(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup.trim();
  return document.importNode(template.content.firstChild, true);  // in a template nothing runs or loads
}

// -- numbers as text, by unit

const short = (value) => String(Number(value.toPrecision(3)));
const count = (value) => Math.round(value).toLocaleString("en-US");

function seconds(value) {
  if (value >= 1) return `${short(value)} s`;
  if (value >= 1e-3) return `${short(1e3 * value)} ms`;
  return value ? `${short(1e6 * value)} µs` : "0";
}

const SHOW = {
  share: (value) => `${(100 * value).toFixed(1)} %`,
  number: (value) => Math.abs(value) < 1e4 ? value.toFixed(3) : value.toExponential(1),
  count,
  seconds,
};
const TICK = {share: (value) => `${short(100 * value)} %`, number: short, count, seconds};

// -- axes

function roundMarks(low, high, about) {  // multiples of 1, 2 or 5 times a power of ten
  const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({length: last - first + 1}, (_, i) => step * (first + i));
}

function logMarks(low, high, about) {  // round multiples of powers of ten, as many as there is room for
  const powers = Array.from({length: 40}, (_, i) => i - 20);
  for (const factors of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const marks = powers.flatMap((power) => factors.map((factor) => factor * 10 ** power));
    const inside = marks.filter((mark) => low <= mark && mark <= high);
    if (inside.length <= about || factors.length === 1) return inside.length > 1 ? inside : roundMarks(low, high, 3);
  }
}

function axis(low, high, log, about) {
  if (!(high > low)) [low, high] = log ? [low / 2, 2 * high] : [low, low + (Math.abs(low) || 1)];
  const on = log ? Math.log : (value) => value;
  return {
    low,
    high,
    marks: (log ? logMarks : roundMarks)(low, high, about),
    share: (value) => (on(value) - on(low)) / (on(high) - on(low)),
    value: (share) => log ? low * (high / low) ** share : low + share * (high - low),
  };
}

function horizontalAxis(chart, width) {
  const all = chart.panel.lines.flatMap((line) => line.x).filter((x) => x > 0 || !chart.logX);
  const [low, high] = chart.view ?? (all.length ? [chart.logX ? Math.min(...all) : 0, Math.max(...all)] : [1, 10]);
  return axis(low, high, chart.logX, Math.max(3, width / 100));
}

// As plots.fit: the beginning of a noisy curve, and one far above all others, may leave the picture.
function verticalAxis(chart, {low, high}, height) {
  const {panel, logY} = chart, about = Math.max(2, height / 75);
  const skip = panel.noisy && !chart.view && !logY ? 0.2 : 0;
  const values = chart.shown().map((i) => {
    const from = Math.max(low, skip * panel.lines[i].x.at(-1));
    const inside = chart.points(i).filter(([x]) => from <= x && x <= high);
    return inside.map(([, y]) => y).filter((y) => y > 0 || !logY);
  }).filter((some) => some.length);
  if (!values.length) return axis(logY ? 0.1 : 0, 1, logY, about);
  const peaks = values.map((some) => Math.max(...some)).sort((a, b) => a - b), half = (peaks.length - 1) / 2;
  const median = (peaks[Math.floor(half)] + peaks[Math.ceil(half)]) / 2;
  const top = panel.noisy && peaks.at(-1) > 5 * median ? 3 * median : peaks.at(-1), bottom = Math.min(...values.flat());
  if (logY) return axis(bottom / 1.05, 1.05 * top, true, about);
  const start = bottom > 0.5 * top ? Math.min(bottom, 0.9 * top) : Math.min(0, bottom);
  const marks = axis(start, top, false, about).marks, step = marks[1] - marks[0];
  return axis(step * Math.floor(start / step + 1e-9), step * Math.ceil(top / step - 1e-9), false, about);
}

// Places nearest to the wanted ones (least squares) that keep their order and a gap, as plots.spread.
function spread(wanted, gap, room) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b] || a - b), pools = [];
  order.forEach((i, rank) => {
    let pool = {sum: wanted[i] - rank * gap, size: 1};
    while (pools.length && pools.at(-1).sum / pools.at(-1).size > pool.sum / pool.size) {
      const last = pools.pop();
      pool = {sum: last.sum + pool.sum, size: last.size + pool.size};
    }
    pools.push(pool);
  });
  const most = Math.max(0, room - gap * (order.length - 1));
  const pooled = pools.flatMap(({sum, size}) => Array(size).fill(clip(sum / size, 0, most)));
  return wanted.map((_, i) => pooled[order.indexOf(i)] + gap * order.indexOf(i));
}

// -- drawing: SVG as text; on paper with a title and the names of the lines

const colour = (number) => `var(--line-${number % 8})`;

function stroke(number) {
  const dash = ["", ";stroke-dasharray:7 4", ";stroke-dasharray:2 3", ";stroke-dasharray:10 3 2 3"][(number >> 3) % 4];
  return `fill:none;stroke:${colour(number)}${dash}`;
}

const swatch = (number) =>
  tag("svg", {class: "swatch", "aria-hidden": true}, tag("path", {style: stroke(number), d: "M1 5H25"}));

const words = (x, y, anchor, text, style = "fill:var(--soft)") =>
  tag("text", {x: place(x), y: place(y), "text-anchor": anchor, style}, escaped(text));

// Where things are: the edges of the plot, its axes, and where values lie in it.
function layout(chart, width, height, paper) {
  const wide = width > 520, top = paper ? 44 : 8, bottom = height - 42;
  const right = width - (paper ? 230 : wide ? 32 : 14);
  const vertical = verticalAxis(chart, horizontalAxis(chart, width), bottom - top);
  const labels = vertical.marks.map(TICK[chart.panel.unit]);
  const left = 12 + 7.2 * Math.max(...labels.map((label) => label.length));
  const horizontal = horizontalAxis(chart, right - left);
  const X = (x) => left + (right - left) * horizontal.share(x);
  const Y = (y) => clip(bottom - (bottom - top) * vertical.share(y), -9999, 9999);
  return {width, height, paper, named: paper || wide, left, right, top, bottom, vertical, horizontal, labels, X, Y};
}

function grid({panel}, {left, right, bottom, vertical, horizontal, labels, X, Y}) {
  const lines = vertical.marks.map((mark, k) =>
    tag("path", {style: "fill:none;stroke:var(--rule)", d: `M${place(left)} ${place(Y(mark))}H${right}`})
    + words(left - 8, Y(mark) + 4, "end", labels[k]));
  const marks = horizontal.marks.map((mark) => words(X(mark), bottom + 18, "middle", TICK[panel.count](mark)));
  const caption = tag("g", {class: "caption"}, words(right, bottom + 35, "end", panel.horizontal));
  return [...lines, ...marks, caption].join("");
}

function curve(chart, i, {X, Y}) {
  const {x, y} = chart.panel.lines[i];
  let pen = "M";
  const path = y.map((value, k) => {
    const drawn = value !== null && (x[k] > 0 || !chart.logX) && (value > 0 || !chart.logY);
    const step = drawn ? `${pen}${place(X(x[k]))} ${place(Y(value))}` : "";
    pen = drawn ? "L" : "M";
    return step;
  });
  const style = `stroke-width:1.9px;stroke-linejoin:round;${stroke(chart.learners[i].number)}`;
  return tag("path", {class: "line", "data-line": i, style, d: path.join("")});
}

// From the end of a line to its name; where it ends before the others, a point: leaders would cross them all.
function ending({number}, i, end, [x, y], right) {
  const line = {"data-line": i};
  if (end[0] < right - 1) {
    const dot = {cx: place(end[0]), cy: place(end[1]), r: 3.5, style: `fill:${colour(number)}`};
    return tag("circle", {class: "end", ...line, ...dot});
  }
  const style = `fill:none;stroke:${colour(number)};stroke-opacity:0.55`;
  return tag("path", {class: "leader", ...line, style, d: `M${place(end[0])} ${place(end[1])}L${x} ${place(y)}`});
}

function draw(chart, width, height, paper) {
  const {panel, learners} = chart, area = layout(chart, width, height, paper);
  const {left, right, top, bottom, horizontal, X, Y} = area;
  const ends = learners.map((_, i) => {  // the last point in sight
    const inside = chart.points(i).filter(([x]) => horizontal.low <= x && x <= horizontal.high);
    const last = inside.filter(([, y]) => y > 0 || !chart.logY).at(-1);
    return last ? [X(last[0]), clip(Y(last[1]), top, bottom)] : null;
  });
  const named = paper ? chart.shown() : learners.map((_, i) => i), gap = paper ? 16 : 21;
  const places = spread(named.map((i) => (ends[i]?.[1] ?? top) - top), gap, bottom - top).map((y) => y + top);
  const box = [left, top - 2, right - left, bottom - top + 4].map(place);
  const window = {x: box[0], y: box[1], width: box[2], height: box[3], viewBox: box.join(" ")};  // cuts off
  const out = [
    grid(chart, area),
    tag("svg", window, chart.shown().reverse().map((i) => curve(chart, i, area)).join("")),  // the best over the others
  ];
  named.forEach((i, k) => {
    const to = [right + (paper ? 20 : 30), places[k]], visible = area.named && !hidden.has(learners[i].name);
    if (visible && ends[i]) out.push(ending(learners[i], i, ends[i], to, right));
    if (!paper) return;
    const style = `stroke-width:2px;${stroke(learners[i].number)}`, label = `${learners[i].name} ${chart.value(i)}`;
    out.push(tag("path", {style, d: `M${to[0] + 4} ${place(to[1])}h22`}));
    out.push(words(to[0] + 32, to[1] + 4, "start", label, "fill:var(--ink)"));
  });
  const title = `${chart.section}: ${panel.title}`;
  if (paper) out.push(words(left, 22, "start", title, "fill:var(--ink);font-weight:600;font-size:13px"));
  else out.push(tag("g", {class: "readout"}));
  const view = {viewBox: `0 0 ${width} ${height}`, width, height};
  const font = {"font-family": "system-ui, sans-serif", "font-size": 12};
  const role = paper ? {role: "img", "aria-label": escaped(title)} : {"aria-hidden": true};
  area.svg = tag("svg", {xmlns: "http://www.w3.org/2000/svg", ...view, ...font, ...role}, out.join("\n"));
  return Object.assign(area, {places});
}

// For a file or a printer: light colours, also where the page is dark.
function onPaper(chart) {
  const style = getComputedStyle(document.documentElement);
  const {svg} = draw(chart, 800, Math.max(420, 90 + 16 * chart.shown().length), true);
  return svg.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).match(/#\w+/)[0]);
}

function save(chart, kind) {
  const name = `${document.title} ${chart.section} ${chart.panel.name}`.replace(/[^\p{L}\p{N}]+/gu, "-").toLowerCase();
  const svg = new Blob([onPaper(chart)], {type: "image/svg+xml"});
  const keep = (blob) => {
    const link = element(tag("a", {href: URL.createObjectURL(blob), download: `${name}.${kind}`}));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  if (kind === "svg") return keep(svg);
  const image = new Image();
  image.onload = () => {
    const canvas = element(tag("canvas", {width: 3 * image.width, height: 3 * image.height}));
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(keep);
    URL.revokeObjectURL(image.src);
  };
  image.src = URL.createObjectURL(svg);
}

// -- a chart and its controls

function choice(label, name, options) {
  const radio = (option, i) => `<label><input type="radio" name="${name}" value="${i}">${escaped(option)}</label>`;
  return tag("fieldset", {class: "choice", role: "radiogroup", "aria-label": label}, options.map(radio).join(""));
}

class Chart {
  constructor(figure, number) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    data.panels.forEach(({x, lines}) => lines.forEach((line) => { line.x ??= x; }));
    Object.assign(this, {figure, panels: data.panels, learners: data.learners, logY: false, at: null});
    this.section = figure.closest("section").querySelector("h2").textContent;
    this.caption = figure.querySelector("figcaption");
    this.controls = element(`<div class="controls">
      ${this.panels.length > 1 ? choice("measure", `measure-${number}`, this.panels.map((panel) => panel.name)) : ""}
      <label><input type="checkbox" value="logX">log x</label>
      <label><input type="checkbox" value="logY">log y</label>
      <button type="button" value="whole" hidden>Whole range</button>
      <button type="button" value="all" hidden>Show all</button>
      <span class="save">
        <button type="button" value="svg" title="Save as SVG">SVG</button>
        <button type="button" value="png" title="Save as PNG">PNG</button>
      </span></div>`);
    this.plot = element('<div class="plot" tabindex="0" role="slider" aria-valuemin="0"></div>');
    const hint = "learners: click to hide or show, with shift to show alone";
    this.legend = element(tag("div", {class: "legend", role: "group", "aria-label": hint, title: hint}));
    this.buttons = this.learners.map((learner, i) => element(
      `<button type="button" class="name" data-learner="${escaped(learner.name)}" data-line="${i}">
      ${swatch(learner.number)}<span>${breakable(learner.name)}</span><output></output></button>`));
    this.legend.append(...this.buttons);
    const frame = element('<div class="frame"></div>');
    frame.append(this.plot, this.legend);
    if (this.panels.length > 1) this.caption.before(this.controls);  // which change the caption
    else this.caption.after(this.controls);
    figure.append(frame, element('<div class="printed"></div>'));
    this.choose(0);
    this.listen();
    new ResizeObserver(() => this.plot.clientWidth !== this.width && this.show()).observe(this.plot);
  }

  control(value) { return this.controls.querySelector(`[value="${value}"]`); }

  choose(number) {
    const panel = this.panels[number];
    Object.assign(this, {panel, view: null, logX: panel.log});
    this.control("logX").checked = panel.log;
    if (this.panels.length > 1) this.control(number).checked = true;
  }

  shown() {
    const has = (i) => this.panel.lines[i].y !== null && !hidden.has(this.learners[i].name);
    return this.learners.map((_, i) => i).filter(has);
  }

  points(i) {  // of a line, those with a value
    const {x, y} = this.panel.lines[i];
    return y === null ? [] : x.map((value, k) => [value, y[k]]).filter(([, value]) => value !== null);
  }

  last(i) { return this.points(i).filter(([x]) => x <= this.at).at(-1); }  // the point at the cursor

  value(i) {  // in words: at the cursor, or where the line ends
    const {x, y} = this.panel.lines[i];
    if (y === null) return "–";
    const stop = this.at ?? this.view?.[1] ?? Infinity, k = x.findLastIndex((value) => value <= stop);
    return k < 0 ? "" : y[k] === null ? "diverged" : SHOW[this.panel.unit](y[k]);
  }

  show() {
    this.width = this.plot.clientWidth;
    if (!this.width) return;  // it is hidden
    const phone = matchMedia("(max-width: 760px)").matches;
    const height = phone ? 300 : 50 + Math.max(340, 21 * this.learners.length);
    this.drawing = draw(this, this.width, height, false);
    this.plot.innerHTML = this.drawing.svg;
    this.legend.style.height = phone ? "" : `${height}px`;
    this.caption.textContent = this.panel.title;
    this.buttons.forEach((button, i) => { button.style.top = `${this.drawing.places[i]}px`; });
    this.control("all").hidden = !this.learners.some(({name}) => hidden.has(name));
    this.control("whole").hidden = !this.view;
    const {low, high} = this.drawing.horizontal, all = this.shown().flatMap((i) => this.panel.lines[i].x);
    this.stops = [...new Set(all)].filter((x) => low <= x && x <= high).sort((a, b) => a - b);  // for the cursor
    this.plot.setAttribute("aria-label", `${this.panel.title}: arrow keys read values, + and - zoom, Escape ends both`);
    this.plot.setAttribute("aria-valuemax", this.stops.length - 1);
    this.read(this.at);
  }

  where(x) {  // a place on the horizontal axis in words
    const {horizontal, count: unit} = this.panel, value = SHOW[unit](x);
    if (unit === "seconds") return `after ${value}`;
    return horizontal === "examples" ? `after ${value} examples` : `${horizontal} ${value}`;
  }

  // Put the cursor at a checkpoint, or take it away (null), and say the values there.
  read(at) {
    this.at = at;
    const {panel, stops} = this, {X, Y, top, bottom} = this.drawing;
    const dots = at === null ? [] : this.shown().flatMap((i) => {
      const [x, y] = (this.last(i) ?? []).map((value, k) => k ? Y(value) : X(value));
      const style = `fill:${colour(this.learners[i].number)}`;
      return top <= y && y <= bottom ? [tag("circle", {cx: place(x), cy: place(y), r: 4, style})] : [];
    });
    const line = at === null ? "" : tag("path", {style: "stroke:var(--soft)", d: `M${place(X(at))} ${top}V${bottom}`});
    this.plot.querySelector(".readout").innerHTML = line + dots.join("");
    this.plot.querySelector(".caption text").textContent = at === null ? panel.horizontal : this.where(at);
    this.legend.classList.toggle("at", at !== null);
    this.buttons.forEach((button, i) => { button.lastElementChild.textContent = this.value(i); });
    const best = this.shown().slice(0, 5).map((i) => `${this.learners[i].name} ${this.value(i)}`).join(", ");
    this.plot.setAttribute("aria-valuenow", at === null ? stops.length - 1 : stops.indexOf(at));
    this.plot.setAttribute("aria-valuetext", `${at === null ? "at the end" : this.where(at)}: ${best}`);
  }

  // See a stretch of the horizontal axis alone; without one, all of it.
  zoom(low, high) {
    const all = low === undefined;
    if (!all && this.stops.filter((x) => low <= x && x <= high).length < 2) return;  // too few points for a line
    this.view = all ? null : [low, high];
    this.at = null;
    this.show();
  }

  scale(factor) {  // around the cursor, or around the middle
    const {low, high} = this.drawing.horizontal, at = this.at, centre = at ?? (low + high) / 2;
    const end = Math.max(...this.panel.lines.flatMap((line) => line.x));
    const from = clip(centre - factor * (centre - low), this.logX ? low : 0, end);
    const to = Math.min(centre + factor * (high - centre), end);
    if (factor > 1 && (this.logX || from === 0) && to === end) this.zoom();
    else this.zoom(from, to);
    this.read(at);
  }

  touch(i) {  // mark a line and its name; none: -1
    const parts = this.figure.querySelectorAll("[data-line]");
    parts.forEach((part) => part.classList.toggle("near", Number(part.dataset.line) === i));
  }

  focus(i) {  // let one line stand out
    this.figure.classList.toggle("focused", i >= 0);
    this.touch(i);
  }

  // The checkpoint nearest to a place in the drawing, and the line that passes near it there.
  nearestStop(x) {
    const distance = (stop) => Math.abs(this.drawing.X(stop) - x);
    return this.stops.reduce((best, stop) => best !== null && distance(best) <= distance(stop) ? best : stop, null);
  }

  nearestLine(y) {
    const distance = (i) => Math.abs(this.drawing.Y(this.last(i)?.[1] ?? NaN) - y);
    return this.shown().filter((i) => distance(i) < 12).sort((a, b) => distance(a) - distance(b))[0] ?? -1;
  }

  listen() {
    const {plot} = this, position = (event) => event.clientX - plot.getBoundingClientRect().left;
    let start = null;  // of a drag
    plot.addEventListener("pointermove", (event) => {
      this.read(this.nearestStop(position(event)));
      this.touch(this.nearestLine(event.clientY - plot.getBoundingClientRect().top));
      if (start !== null) this.band(start, position(event));
    });
    plot.addEventListener("pointerdown", (event) => {
      this.read(this.nearestStop(position(event)));
      if (event.pointerType !== "mouse" || event.button) return;
      start = position(event);
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointerup", (event) => {
      const from = start;
      start = null;
      if (from !== null && Math.abs(position(event) - from) > 8) this.zoom(...this.stretch(from, position(event)));
    });
    plot.addEventListener("pointercancel", () => { start = null; });
    plot.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "mouse") return;  // a touch keeps the cursor where it is
      this.read(null);
      this.touch(-1);
    });
    plot.addEventListener("dblclick", () => this.zoom());
    plot.addEventListener("keydown", (event) => this.key(event));
    this.controls.addEventListener("change", ({target}) => {
      if (target.type === "radio") this.choose(target.value);
      else this[target.value] = target.checked;
      this.at = null;
      this.show();
    });
    this.controls.addEventListener("click", ({target}) => {
      if (target.value === "svg" || target.value === "png") save(this, target.value);
      if (target.value === "whole") this.zoom();
      if (target.value === "all") showAll();
    });
  }

  stretch(...ends) {  // of the horizontal axis between two places in the drawing
    const {left, right, horizontal} = this.drawing;
    return ends.map((x) => horizontal.value(clip((x - left) / (right - left), 0, 1))).sort((a, b) => a - b);
  }

  band(...ends) {  // show what a drag would zoom to
    const {X, top, bottom} = this.drawing, [low, high] = this.stretch(...ends).map(X);
    const size = {x: place(low), y: top, width: place(high - low), height: bottom - top};
    const band = tag("rect", {class: "band", ...size, style: "fill:var(--line-0);opacity:0.14"});
    this.plot.querySelector(".readout").insertAdjacentHTML("afterbegin", band);
  }

  key(event) {
    const {stops} = this, end = stops.length - 1;
    const now = this.at === null ? end : stops.indexOf(this.at), step = event.shiftKey ? 5 : 1;
    const moves = {ArrowLeft: now - step, ArrowDown: now - step, ArrowRight: now + step, ArrowUp: now + step};
    const to = {...moves, Home: 0, End: end}[event.key];
    if (to !== undefined && stops.length) this.read(stops[clip(to, 0, end)]);
    else if (event.key === "+" || event.key === "=") this.scale(0.5);
    else if (event.key === "-") this.scale(2);
    else if (event.key === "Escape") this.zoom();
    else return;
    event.preventDefault();
  }
}

// -- the page

const named = () => document.querySelectorAll("[data-learner]");

function refresh() {
  named().forEach((button) => button.setAttribute("aria-pressed", !hidden.has(button.dataset.learner)));
  charts.forEach((chart) => chart.show());
}

function showAll() {
  hidden.clear();
  refresh();
}

// A click hides or shows a learner; with shift, it alone is shown.
function choose(name, alone) {
  if (alone) named().forEach((button) => hidden.add(button.dataset.learner));
  if (!hidden.delete(name)) hidden.add(name);
  refresh();
}

// A name in a legend or a table, and the charts of its section.
function listenTo(button) {
  const name = button.dataset.learner, area = button.closest("tr") ?? button;
  const near = charts.filter((chart) => chart.figure.closest("section") === button.closest("section"));
  const focus = (on) => near.forEach((chart) =>
    chart.focus(on && !hidden.has(name) ? chart.learners.findIndex((learner) => learner.name === name) : -1));
  button.addEventListener("click", (event) => choose(name, event.shiftKey));
  area.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && focus(true));
  area.addEventListener("pointerleave", () => focus(false));
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => head.addEventListener("click", () => {
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const value = (row) => row.cells[column].dataset.value;
    const compare = (a, b) => a === "" || b === "" ? (a === "") - (b === "")  // what is absent stays last
      : sign * (isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b);
    body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b))));
  }));
}

// Light, dark, or as the system has it; remembered where the browser allows.
function themes() {
  const names = ["auto", "light", "dark"], control = element(choice("colours", "theme", names));
  const use = (name) => {
    document.documentElement.dataset.theme = name;
    control.elements[names.indexOf(name)].checked = true;
  };
  let known = null;
  try { known = localStorage.getItem("onkel-theme"); } catch { /* it is not remembered */ }
  use(names.includes(known) ? known : "auto");
  control.classList.add("theme");
  control.addEventListener("change", ({target}) => {
    use(names[target.value]);
    try { localStorage.setItem("onkel-theme", names[target.value]); } catch { /* it is not remembered */ }
  });
  document.querySelector("header").prepend(control);
}

themes();
document.querySelectorAll("table").forEach(sortable);
document.querySelectorAll(".chart").forEach((figure, i) => charts.push(new Chart(figure, i)));
named().forEach(listenTo);
refresh();
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((details) => { details.open = true; });
  charts.forEach((chart) => { chart.figure.querySelector(".printed").innerHTML = onPaper(chart); });
});
