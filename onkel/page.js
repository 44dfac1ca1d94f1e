"use strict";
// Charts, sorting, and the choice of light or dark. A learner is shown or hidden on the whole page at once.

const hidden = new Set();  // names of learners
const charts = [];
const make = (markup) => Object.assign(document.createElement("template"), {innerHTML: markup.trim()}).content.firstChild;
const breakable = (name) => name.split(/(?<=[a-z])(?=[A-Z])/).map(escaped).join("<wbr>");
const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

// -- numbers as text

const short = (value) => String(Number(value.toPrecision(3)));
const time = (value) =>
  value >= 1 ? `${short(value)} s` : value >= 1e-3 ? `${short(1e3 * value)} ms` : value ? `${short(1e6 * value)} µs` : "0";
const count = (value) => Math.round(value).toLocaleString("en-US");
const SHOW = {
  share: (value) => `${(100 * value).toFixed(1)} %`,
  number: (value) => Math.abs(value) < 1e4 ? value.toFixed(3) : value.toExponential(1),
  count, seconds: time,
};
const TICK = {share: (value) => `${short(100 * value)} %`, number: short, count, seconds: time};

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
    const marks = powers.flatMap((p) => factors.map((f) => f * 10 ** p)).filter((m) => low <= m && m <= high);
    if (marks.length <= about || factors.length === 1) return marks.length > 1 ? marks : roundMarks(low, high, 3);
  }
}

function axis(low, high, log, about) {
  if (!(high > low)) [low, high] = log ? [low / 2, 2 * high] : [low, low + (Math.abs(low) || 1)];
  const on = log ? Math.log : (value) => value;
  return {
    low, high,
    marks: (log ? logMarks : roundMarks)(low, high, about),
    share: (value) => (on(value) - on(low)) / (on(high) - on(low)),
    value: (share) => log ? low * (high / low) ** share : low + share * (high - low),
  };
}

function across(chart, width) {
  const all = chart.panel.lines.flatMap((line) => line.x);
  const [low, high] = chart.view ?? [chart.logX ? Math.min(...all.filter((x) => x > 0)) : 0, Math.max(...all)];
  return axis(low, high, chart.logX, Math.max(3, width / 100));
}

// As plots.error_axis: the beginning of a noisy curve, and one far above all others, may leave the picture.
function down(chart, {low, high}, height) {
  const skip = chart.panel.noisy && !chart.view && !chart.logY ? 0.2 : 0;
  const inside = chart.shown().map((i) => {
    const from = Math.max(low, skip * chart.panel.lines[i].x.at(-1));
    return points(chart, i).filter(([x]) => from <= x && x <= high).map(([, y]) => y);
  });
  const values = inside.map((ys) => chart.logY ? ys.filter((y) => y > 0) : ys).filter((ys) => ys.length);
  const peaks = values.map((ys) => Math.max(...ys)).sort((a, b) => a - b);
  if (!peaks.length) return axis(chart.logY ? 0.1 : 0, 1, chart.logY, 5);
  const middle = peaks.length % 2 ? peaks[peaks.length >> 1] : (peaks[peaks.length / 2 - 1] + peaks[peaks.length / 2]) / 2;
  const top = chart.panel.noisy ? Math.min(peaks.at(-1), 3 * middle) : peaks.at(-1);
  const bottom = Math.min(...values.flat()), about = Math.max(2, height / 75);
  if (chart.logY) return axis(bottom / 1.05, 1.05 * top, true, about);
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
  const most = Math.max(0, room - gap * (order.length - 1)), places = [];
  pools.forEach(({sum, size}) => { for (let k = 0; k < size; k++) places.push(Math.min(Math.max(sum / size, 0), most)); });
  return wanted.map((_, i) => places[order.indexOf(i)] + gap * order.indexOf(i));
}

// -- drawing

const points = (chart, i) => {  // those with a finite value
  const {x, y} = chart.panel.lines[i];
  return y === null ? [] : x.map((value, k) => [value, y[k]]).filter(([, value]) => value !== null);
};
const stroke = (number) => {
  const dash = ["", "7 4", "2 3", "10 3 2 3"][(number >> 3) % 4];
  return `stroke:var(--line-${number % 8})${dash && `;stroke-dasharray:${dash}`}`;
};
const swatch = (number) => `<svg class="swatch" aria-hidden="true"><path style="${stroke(number)}" d="M1 5H25"/></svg>`;

// The chart as SVG text; a paper has its title and the names of its lines inside.
function draw(chart, width, height, paper) {
  const {panel, learners} = chart, wide = width > 520;
  const top = paper ? 44 : 8, bottom = height - 42, right = paper ? width - 230 : width - (wide ? 32 : 14);
  const vertical = down(chart, across(chart, width), bottom - top);  // needs the stretch of the horizontal one only
  const labels = vertical.marks.map(TICK[panel.unit]);
  const left = 12 + 7.2 * Math.max(...labels.map((label) => label.length));
  const horizontal = across(chart, right - left);
  const X = (x) => left + (right - left) * horizontal.share(x);
  const Y = (y) => Math.min(Math.max(bottom - (bottom - top) * vertical.share(y), -9999), 9999);
  const text = (x, y, anchor, words, style = "") =>
    `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" style="fill:var(--soft)${style}">${escaped(words)}</text>`;
  const out = [];
  vertical.marks.forEach((mark, k) => {
    out.push(`<path style="fill:none;stroke:var(--rule)" d="M${left} ${Y(mark).toFixed(1)}H${right}"/>`);
    out.push(text(left - 8, Y(mark) + 4, "end", labels[k]));
  });
  horizontal.marks.forEach((mark) => out.push(text(X(mark), bottom + 18, "middle", TICK[panel.count](mark))));
  out.push(`<g class="caption">${text(right, bottom + 35, "end", panel.horizontal)}</g>`);
  if (paper) out.push(text(left, 22, "start", `${chart.section}: ${panel.title}`, ";font-weight:600;font-size:13px"));

  const ends = learners.map((_, i) => {
    const last = points(chart, i).filter(([x]) => horizontal.low <= x && x <= horizontal.high).at(-1);
    return last && !(chart.logY && last[1] <= 0) ? [X(last[0]), Math.min(Math.max(Y(last[1]), top), bottom)] : [right, top];
  });
  const labelled = paper ? chart.shown() : learners.map((_, i) => i), gap = paper ? 16 : 21;
  const places = spread(labelled.map((i) => ends[i][1] - top), gap, bottom - top).map((place) => place + top);
  const [span, tall] = [right - left, bottom - top + 4];
  out.push(`<svg x="${left}" y="${top - 2}" width="${span}" height="${tall}" viewBox="${left} ${top - 2} ${span} ${tall}" style="fill:none;stroke-linejoin:round">`);
  chart.shown().reverse().forEach((i) => {  // the best is drawn over the others
    const {x, y} = panel.lines[i];
    let pen = "M";
    const path = (y ?? []).map((value, k) => {
      const drawn = value !== null && !(chart.logX && x[k] <= 0) && !(chart.logY && value <= 0);
      const word = drawn ? `${pen}${X(x[k]).toFixed(1)} ${Y(value).toFixed(1)}` : "";
      pen = drawn ? "L" : "M";
      return word;
    }).join("");
    out.push(`<path class="line" data-line="${i}" style="stroke-width:1.9px;${stroke(learners[i].number)}" d="${path}"/>`);
  });
  out.push("</svg>");
  labelled.forEach((i, k) => {
    if ((!wide && !paper) || hidden.has(learners[i].name) || !points(chart, i).length) return;
    const {name, number} = learners[i], place = places[k].toFixed(1), to = right + (paper ? 20 : 30);
    const [x, y] = ends[i].map((value) => value.toFixed(1)), colour = `var(--line-${number % 8})`;
    out.push(ends[i][0] > right - 1  // a line that ends before the others gets a point there; leaders would cross all
      ? `<path class="leader" data-line="${i}" style="fill:none;stroke:${colour};stroke-opacity:0.55" d="M${x} ${y}L${to} ${place}"/>`
      : `<circle class="end" data-line="${i}" style="fill:${colour}" cx="${x}" cy="${y}" r="3.5"/>`);
    if (!paper) return;
    out.push(`<path style="fill:none;stroke-width:2px;${stroke(number)}" d="M${to + 4} ${place}h22"/>`);
    out.push(text(to + 32, places[k] + 4, "start", `${name} ${chart.value(i)}`, ";fill:var(--ink)"));
  });
  out.push('<g class="readout"></g>');
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="12">${out.join("\n")}</svg>`;
  return {svg, X, Y, left, right, top, bottom, horizontal, places};
}

// As a file: light colours, also where the page is dark.
function onPaper(chart) {
  const style = getComputedStyle(document.documentElement);
  const {svg} = draw(chart, 800, Math.max(420, 90 + 16 * chart.shown().length), true);
  return svg.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).match(/#\w+/)[0]);
}

function save(chart, kind) {
  const name = `${document.title} ${chart.section} ${chart.panel.name}`.replace(/[^\p{L}\p{N}]+/gu, "-").toLowerCase();
  const svg = new Blob([onPaper(chart)], {type: "image/svg+xml"});
  const keep = (blob) => {
    const link = Object.assign(document.createElement("a"), {href: URL.createObjectURL(blob), download: `${name}.${kind}`});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  if (kind === "svg") return keep(svg);
  const image = new Image();
  image.onload = () => {
    const canvas = Object.assign(document.createElement("canvas"), {width: 3 * image.width, height: 3 * image.height});
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

const choice = (label, name, words) => `<fieldset class="choice" role="radiogroup" aria-label="${label}">${words.map((word, i) =>
  `<label><input type="radio" name="${name}" value="${i}"${i ? "" : " checked"}>${escaped(word)}</label>`).join("")}</fieldset>`;

class Chart {
  constructor(figure, number) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    data.panels.forEach(({x, lines}) => lines.forEach((line) => { line.x ??= x; }));
    Object.assign(this, {figure, number, panels: data.panels, panel: data.panels[0], learners: data.learners});
    Object.assign(this, {view: null, logX: false, logY: false, at: null, drawing: null});
    this.section = figure.closest("section").querySelector("h2").textContent;
    this.caption = figure.querySelector("figcaption");
    this.controls = make(`<div class="controls">
      ${this.panels.length > 1 ? choice("measure", `measure-${number}`, this.panels.map((panel) => panel.name)) : ""}
      <label><input type="checkbox" value="logX">log x</label>
      <label><input type="checkbox" value="logY">log y</label>
      <button type="button" value="whole" hidden>Whole range</button>
      <button type="button" value="all" hidden>Show all</button>
      <span class="save"><button type="button" value="svg" title="Save as SVG">SVG</button><button type="button" value="png" title="Save as PNG">PNG</button></span></div>`);
    this.plot = make('<div class="plot" tabindex="0" role="slider" aria-valuemin="0"></div>');
    this.legend = make(`<div class="legend" role="group" aria-label="learners: click to hide or show, with shift to show alone">${this.learners.map(({name, number}, i) =>
      `<button type="button" class="name" data-learner="${escaped(name)}" data-line="${i}">${swatch(number)}<span>${breakable(name)}</span><output></output></button>`).join("")}</div>`);
    const frame = make('<div class="frame"></div>');
    frame.append(this.plot, this.legend);
    this.buttons = [...this.legend.children];
    figure.append(this.controls, frame, make('<div class="printed"></div>'));
    figure.insertBefore(this.controls, this.caption);
    this.choose(this.panel);
    this.listen();
    new ResizeObserver(() => this.plot.clientWidth !== this.width && this.show()).observe(this.plot);
  }

  choose(panel) {
    Object.assign(this, {panel, view: null, logX: panel.log});
    this.controls.querySelector("[value=logX]").checked = panel.log;
  }

  shown() { return this.learners.map((_, i) => i).filter((i) => !hidden.has(this.learners[i].name) && this.panel.lines[i].y); }

  // The value of a line at the cursor, or where it ends.
  value(i) {
    const {x, y} = this.panel.lines[i];
    if (y === null) return "–";
    const stop = this.at ?? this.view?.[1] ?? Infinity, k = x.findLastIndex((value) => value <= stop);
    return k < 0 ? "" : y[k] === null ? "diverged" : SHOW[this.panel.unit](y[k]);
  }

  stops() {  // where the cursor may stand: the checkpoints of the lines shown
    const [low, high] = this.view ?? [0, Infinity];
    const all = this.shown().flatMap((i) => this.panel.lines[i].x).filter((x) => low <= x && x <= high && !(this.logX && x <= 0));
    return [...new Set(all)].sort((a, b) => a - b);
  }

  show() {
    this.width = this.plot.clientWidth;
    if (!this.width) return;  // not seen, as in print
    const phone = matchMedia("(max-width: 760px)").matches, height = phone ? 300 : 50 + Math.max(340, 21 * this.learners.length);
    this.drawing = draw(this, this.width, height, false);
    this.plot.innerHTML = this.drawing.svg;
    this.legend.style.height = phone ? "" : `${height}px`;
    this.caption.textContent = this.panel.title;
    this.plot.setAttribute("aria-label", `${this.panel.title}. Arrow keys read values, + and - zoom, Escape ends both.`);
    this.buttons.forEach((button, i) => {
      button.style.top = `${this.drawing.places[i]}px`;
      button.setAttribute("aria-pressed", String(!hidden.has(this.learners[i].name)));
    });
    const [all, whole] = ["all", "whole"].map((value) => this.controls.querySelector(`[value=${value}]`));
    all.hidden = !this.learners.some(({name}) => hidden.has(name));
    whole.hidden = !this.view;
    this.read(this.at);
  }

  // Put the cursor at a checkpoint, or take it away (null), and say the values there.
  read(at) {
    this.at = at;
    const {panel, drawing} = this, {X, Y, top, bottom} = drawing, stops = this.stops();
    const marks = at === null ? [] : this.shown().map((i) => {
      const last = points(this, i).filter(([x]) => x <= at).at(-1), y = last && Y(last[1]);
      return last && top <= y && y <= bottom ? `<circle cx="${X(last[0]).toFixed(1)}" cy="${y.toFixed(1)}" r="4" style="fill:var(--line-${this.learners[i].number % 8})"/>` : "";
    });
    if (at !== null) marks.unshift(`<path style="stroke:var(--soft)" d="M${X(at).toFixed(1)} ${top}V${bottom}"/>`);
    this.plot.querySelector(".readout").innerHTML = marks.join("");
    const place = at === null ? panel.horizontal : panel.count === "seconds" ? `after ${time(at)}` : `after ${SHOW[panel.count](at)} ${panel.horizontal}`;
    this.plot.querySelector(".caption text").textContent = place;
    this.legend.classList.toggle("at", at !== null);
    this.buttons.forEach((button, i) => { button.lastElementChild.textContent = this.value(i); });
    const best = this.shown().slice(0, 5).map((i) => `${this.learners[i].name} ${this.value(i)}`).join(", ");
    this.plot.setAttribute("aria-valuemax", stops.length - 1);
    this.plot.setAttribute("aria-valuenow", at === null ? stops.length - 1 : stops.indexOf(at));
    this.plot.setAttribute("aria-valuetext", `${at === null ? "at the end" : place}: ${best}`);
  }

  zoom(low, high) {
    const whole = low === undefined;
    if (!whole && this.stops().filter((x) => low <= x && x <= high).length < 2) return;  // nothing to see there
    this.view = whole ? null : [low, high];
    this.at = null;
    this.show();
  }

  // Zoom by a factor around the cursor, or around the middle.
  scale(factor) {
    const {low, high} = this.drawing.horizontal, centre = this.at ?? (low + high) / 2, at = this.at;
    const end = Math.max(...this.panel.lines.flatMap((line) => line.x));
    const view = [Math.max(this.logX ? low : 0, centre - factor * (centre - low)), Math.min(end, centre + factor * (high - centre))];
    if (factor > 1 && view[0] <= 0 && view[1] >= end) this.zoom();
    else this.zoom(...view);
    this.read(at);
  }

  touch(i) {  // mark a line and its name; none: -1
    this.figure.querySelectorAll("[data-line]").forEach((part) => part.classList.toggle("near", Number(part.dataset.line) === i));
  }

  focus(i) {  // let a line stand out before all others
    this.figure.classList.toggle("focused", i >= 0);
    this.touch(i);
  }

  nearest(y) {  // the line at the cursor that passes near this height
    const distance = (i) => Math.abs(this.drawing.Y(points(this, i).filter(([x]) => x <= this.at).at(-1)?.[1] ?? NaN) - y);
    return this.shown().filter((i) => distance(i) < 12).sort((a, b) => distance(a) - distance(b))[0] ?? -1;
  }

  listen() {
    const {plot} = this;
    const position = (event) => event.clientX - plot.getBoundingClientRect().left;
    const value = (x) => this.drawing.horizontal.value((x - this.drawing.left) / (this.drawing.right - this.drawing.left));
    const nearest = (x) => {
      const distance = (stop) => Math.abs(this.drawing.X(stop) - x);
      return this.stops().reduce((best, stop) => distance(stop) < distance(best) ? stop : best, this.stops()[0] ?? null);
    };
    let start = null;
    plot.addEventListener("pointermove", (event) => {
      this.read(nearest(position(event)));
      this.touch(this.nearest(event.clientY - plot.getBoundingClientRect().top));
      if (start === null) return;
      const {left, right, top, bottom} = this.drawing;
      const [low, high] = [start, position(event)].map((x) => Math.min(Math.max(x, left), right)).sort((a, b) => a - b);
      plot.querySelector(".readout").insertAdjacentHTML("afterbegin",
        `<rect class="band" x="${low}" y="${top}" width="${high - low}" height="${bottom - top}" style="fill:var(--line-0);opacity:0.14"/>`);
    });
    plot.addEventListener("pointerdown", (event) => {
      this.read(nearest(position(event)));
      if (event.pointerType !== "mouse" || event.button) return;
      start = position(event);
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointerup", (event) => {
      const [low, high] = [start ?? 0, position(event)].sort((a, b) => a - b), dragged = start !== null && high - low > 8;
      start = null;
      if (dragged) this.zoom(Math.max(value(low), this.drawing.horizontal.low), Math.min(value(high), this.drawing.horizontal.high));
    });
    plot.addEventListener("pointerleave", () => {
      this.read(null);
      this.touch(-1);
    });
    plot.addEventListener("dblclick", () => this.zoom());
    plot.addEventListener("keydown", (event) => {
      const stops = this.stops(), now = this.at === null ? stops.length - 1 : stops.indexOf(this.at), step = event.shiftKey ? 5 : 1;
      const to = {ArrowLeft: now - step, ArrowDown: now - step, ArrowRight: now + step, ArrowUp: now + step, Home: 0, End: stops.length - 1}[event.key];
      if (to !== undefined && stops.length) this.read(stops[Math.min(Math.max(to, 0), stops.length - 1)]);
      else if (event.key === "+" || event.key === "=") this.scale(0.5);
      else if (event.key === "-") this.scale(2);
      else if (event.key === "Escape") this.zoom();
      else return;
      event.preventDefault();
    });
    this.controls.addEventListener("change", ({target}) => {
      if (target.type === "radio") this.choose(this.panels[target.value]);
      else this[target.value] = target.checked;
      this.at = null;
      this.show();
    });
    this.controls.addEventListener("click", ({target}) => {
      if (target.value === "svg" || target.value === "png") save(this, target.value);
      if (target.value === "whole") this.zoom();
      if (target.value === "all") { hidden.clear(); refresh(); }
    });
  }
}

// -- the page

function refresh() {
  document.querySelectorAll("[data-learner]").forEach((button) => button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.learner))));
  charts.forEach((chart) => chart.show());
}

// A click hides or shows a learner; with shift, it alone is shown.
function choose(name, alone) {
  if (alone) document.querySelectorAll("[data-learner]").forEach((button) => hidden.add(button.dataset.learner));
  if (!hidden.delete(name)) hidden.add(name);
  refresh();
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, column) => row.cells[column].dataset.value;
  heads.forEach((head, column) => head.addEventListener("click", () => {
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const compare = (a, b) => a === "" || b === "" ? (a === "") - (b === "")  // what is absent stays last
      : sign * (isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b);
    body.append(...[...body.rows].sort((a, b) => compare(value(a, column), value(b, column))));
  }));
}

function themes() {
  const names = ["auto", "light", "dark"], control = make(choice("colours", "theme", names));
  control.classList.add("theme");
  const use = (name) => {
    document.documentElement.dataset.theme = name;
    control.elements[names.indexOf(name)].checked = true;
  };
  control.addEventListener("change", ({target}) => {
    use(names[target.value]);
    try { localStorage.setItem("onkel-theme", names[target.value]); } catch { /* not remembered, then */ }
  });
  let known = null;
  try { known = localStorage.getItem("onkel-theme"); } catch { /* a browser that forbids it */ }
  use(names.includes(known) ? known : "auto");
  document.querySelector("header").prepend(control);
}

themes();
document.querySelectorAll("table").forEach(sortable);
document.querySelectorAll(".chart").forEach((figure, i) => charts.push(new Chart(figure, i)));
document.querySelectorAll("[data-learner]").forEach((button) => {
  const own = charts.filter((chart) => chart.figure.closest("section") === button.closest("section"));
  const focus = (on) => own.forEach((chart) => {
    const i = chart.learners.findIndex(({name}) => name === button.dataset.learner);
    chart.focus(on && !hidden.has(button.dataset.learner) ? i : -1);
  });
  const area = button.closest("tr") ?? button;
  button.addEventListener("click", (event) => choose(button.dataset.learner, event.shiftKey));
  area.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && focus(true));
  area.addEventListener("pointerleave", () => focus(false));
});
refresh();
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((details) => { details.open = true; });
  charts.forEach((chart) => { chart.figure.querySelector(".printed").innerHTML = onPaper(chart); });
});
