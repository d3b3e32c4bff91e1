const maps = {
  viridis: "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725",
  magma: "000004 0a0822 1d1147 36106b 51127c 6a1c81 832681 9c2e7f b73779 d0416f e75263 f56b5c fc8961 fea772 fec488 fde2a3 fcfdbf",
  cividis: "00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78 8c8878 9b9476 aba072 bcae6c cdbb63 dec958 f0d846 fee838",
  coolwarm: "3b4cc0 4e68d8 6282ea 779af7 8db0fe a3c2fe b9d0f9 ccd9ed dddcdc ecd3c5 f5c4ac f7b093 f4987a eb7d62 dd5f4b ca3b37 b40426",
  gray: "000000 ffffff",
};
const dim = data.axes.length, last = data.times.length - 1;
const MOST_DECODED = 12, FIRST_CURVES = 6, ARROW = 26, TRACK = 9;
const decoded = new Map();
let timer = null, shown = null, table = null, layers = [];

/* What is chosen to be shown: a field, or the length of a vector. */
function choiceOf(text) {
  const number = Number(text.slice(1));
  if (text[0] === "f") return { ...data.fields[number], parts: [number] };
  const vector = data.vectors[number], first = data.fields[vector.parts[0]];
  return { ...first, ...vector, name: `|${vector.name}|`, length: true };
}

/* 256 colours, straight lines between those of a map. */
function tableOf(map) {
  const stops = map.split(" ").map(hex => [0, 2, 4].map(k => parseInt(hex.slice(k, k + 2), 16)));
  return Array.from({ length: 256 }, (_, level) => {
    const place = level / 255 * (stops.length - 1), k = Math.min(Math.floor(place), stops.length - 2);
    return stops[k].map((low, c) => Math.round(low + (place - k) * (stops[k + 1][c] - low)));
  });
}

/* The numbers of a field at a frame, x changing fastest; few are kept. */
function numbersOf(number, frame) {
  const key = `${number}/${frame}`;
  let found = decoded.get(key);
  if (found === undefined) {
    const { frames, offsets, scale } = data.fields[number], offset = offsets[frame], text = atob(frames[frame]), bytes = new Uint8Array(text.length);
    for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
    const view = new DataView(bytes.buffer);
    found = new Float64Array(bytes.length / 4);
    for (let k = 0; k < found.length; k++) found[k] = offset + scale * view.getFloat32(4 * k, true);
  }
  decoded.delete(key); decoded.set(key, found);
  if (decoded.size > MOST_DECODED) decoded.delete(decoded.keys().next().value);
  return found;
}

function valuesOf(choice, frame) {
  const parts = choice.parts.map(number => numbersOf(number, frame));
  return choice.length ? parts[0].map((_, k) => Math.hypot(...parts.map(part => part[k]))) : parts[0];
}

const frameNow = () => Number(at("frame").value);
const isLog = () => at("log").checked && shown.positive !== null;

/* The ends of colours or of an axis, by the choice of the user. */
function rangeNow(values) {
  const log = isLog();
  if (at("range").value === "own") {
    const low = Number(at("low").value), high = Number(at("high").value);
    if (at("low").value !== "" && at("high").value !== "" && high > low && (!log || low > 0)) return [low, high];
  }
  let [low, high] = shown.range || [0, 0];
  if (at("range").value === "now") {
    [low, high] = [Infinity, -Infinity];
    for (const value of values) if (Number.isFinite(value) && (!log || value > 0)) { low = Math.min(low, value); high = Math.max(high, value); }
    if (low > high) [low, high] = shown.range || [0, 0];
  }
  if (log && low <= 0) low = shown.positive;
  if (high > low) return [low, high];
  const pad = log ? 0 : Math.abs(low) * .05 || 1;
  return log ? [low / 2, low * 2] : [low - pad, high + pad];
}

/* As many digits as tell numbers between two ends apart. */
function digitsOf([low, high]) {
  const shared = Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / (high - low)));
  return Math.min(17, Math.max(0, shared) + 6);
}

function shareOf([low, high]) {
  if (isLog()) { const wide = Math.log(high / low); return value => value > 0 ? Math.log(value / low) / wide : NaN; }
  return value => (value - low) / (high - low);
}

/* The planes that are drawn: their two axes, and the one they are cut along. */
function planesNow() {
  if (dim < 3) return [{ axes: [0, 1], normal: null }];
  const all = [{ axes: [0, 1], normal: 2 }, { axes: [0, 2], normal: 1 }, { axes: [1, 2], normal: 0 }];
  return at("planes").value === "all" ? all : all.filter(each => data.axes[each.normal] === at("planes").value);
}

/* Where in an array the point lies that has these places in a plane. */
function indexOf({ axes, normal }, i, j) {
  const place = [0, 0, 0];
  place[axes[0]] = i; place[axes[1]] = j;
  if (normal !== null) place[normal] = layers[normal];
  const [nx, ny] = shown.counts;
  return place[0] + nx * (place[1] + ny * place[2]);
}

const endsOf = axis => [shown.first[axis] - shown.steps[axis] / 2, shown.first[axis] + (shown.counts[axis] - .5) * shown.steps[axis]];
const middleOf = (axis, k) => shown.first[axis] + k * shown.steps[axis];

/* Where a plane lies on its canvas, whose height follows from it. */
function layOut(canvas, plane, count) {
  const pen = canvas.getContext("2d"), width = canvas.getBoundingClientRect().width;
  const [a, b] = plane.axes, [x0, x1] = endsOf(a), [y0, y1] = endsOf(b);
  pen.font = FONT;
  const yt = ticks(y0, y1, 5), left = 30 + Math.max(...labelsOf(yt).map(label => pen.measureText(label).width)), top = 10, right = 18, bottom = 38;
  const most = Math.max(140, window.innerHeight * (count > 1 ? .36 : .68));
  let wide = Math.max(40, width - left - right), tall = Math.min(most, wide * .75);
  if (at("aspect").checked) {
    tall = wide * (y1 - y0) / (x1 - x0);
    if (tall > most) { wide *= most / tall; tall = most; }
    tall = Math.max(tall, 2);
  }
  canvas.style.height = `${Math.ceil(top + tall + bottom)}px`;
  return { left, top, wide, tall, x0, x1, y0, y1, px: x => left + (x - x0) / (x1 - x0) * wide, py: y => top + tall - (y - y0) / (y1 - y0) * tall };
}

/* A plane with its axes; what was drawn is kept for the mouse. */
function drawPlane(panel, values, range, count) {
  const { canvas, plane } = panel, at_ = layOut(canvas, plane, count), [a, b] = plane.axes, share = shareOf(range);
  const [pen] = penOf(canvas), columns = shown.counts[a], rows = shown.counts[b];
  const image = new ImageData(columns, rows), none = parseInt(styled("--none").slice(1), 16);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const part = share(values[indexOf(plane, column, rows - 1 - row)]), place = 4 * (row * columns + column);
      const colour = Number.isFinite(part) ? table[Math.round(Math.min(1, Math.max(0, part)) * 255)] : [none >> 16, none >> 8 & 255, none & 255];
      image.data.set(colour, place); image.data[place + 3] = 255;
    }
  const small = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
  small.getContext("2d").putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, at_.left, at_.top, at_.wide, at_.tall);
  panel.place = at_; panel.image = small;
  drawVectors(pen, plane, at_);
  const ink = styled("--ink"), pale = styled("--pale");
  if (plane.normal !== null && count > 1) {
    pen.strokeStyle = "#fff"; pen.lineWidth = 1; pen.globalAlpha = .55; pen.setLineDash([5, 4]);
    const x = at_.px(middleOf(a, layers[a])), y = at_.py(middleOf(b, layers[b]));
    stroke(pen, [[x, at_.top], [x, at_.top + at_.tall]]); stroke(pen, [[at_.left, y], [at_.left + at_.wide, y]]);
    pen.setLineDash([]); pen.globalAlpha = 1;
  }
  pen.strokeStyle = pale; pen.lineWidth = 1;
  pen.strokeRect(at_.left - .5, at_.top - .5, at_.wide + 1, at_.tall + 1);
  pen.fillStyle = pale; pen.textAlign = "center"; pen.textBaseline = "top";
  const xt = ticks(at_.x0, at_.x1, Math.max(2, at_.wide / 70)), yt = ticks(at_.y0, at_.y1, Math.max(2, Math.min(6, at_.tall / 32)));
  labelsOf(xt).forEach((label, k) => { const x = at_.px(xt[k]); stroke(pen, [[x, at_.top + at_.tall + 1], [x, at_.top + at_.tall + 5]]); pen.fillText(label, x, at_.top + at_.tall + 7); });
  pen.textAlign = "right"; pen.textBaseline = "middle";
  let above = Infinity;
  labelsOf(yt).forEach((label, k) => {
    const y = at_.py(yt[k]);
    stroke(pen, [[at_.left - 5, y], [at_.left - 1, y]]);
    if (above - y < 13) return;
    pen.fillText(label, at_.left - 8, y); above = y;
  });
  pen.fillStyle = ink; pen.textAlign = "center"; pen.textBaseline = "bottom";
  pen.fillText(data.axes[a], at_.left + at_.wide / 2, at_.top + at_.tall + 38);
  pen.textBaseline = "middle";
  pen.fillText(data.axes[b], 9, at_.top + at_.tall / 2);
}

/* The vector laid over the planes: which, its components in a plane, and its largest length. */
function vectorNow(plane) {
  const [number, way] = at("overlay").value.split(":");
  if (!way) return null;
  const vector = data.vectors[number], [p, q] = plane.axes.map(axis => vector.parts["xyz".indexOf(data.axes[axis])]);
  if (p === undefined || q === undefined) return null;
  const frame = frameNow();
  let longest = vector.range === null ? 0 : vector.range[1];
  if (at("range").value === "now") {
    const lengths = valuesOf({ parts: vector.parts, length: true }, frame);
    longest = lengths.reduce((most, each) => Number.isFinite(each) ? Math.max(most, each) : most, 0);
  }
  const same = data.fields[p].counts.every((n, k) => n === shown.counts[k]);
  return longest > 0 && same ? { along: numbersOf(p, frame), across: numbersOf(q, frame), way, longest, name: vector.name } : null;
}

function drawVectors(pen, plane, place) {
  const vector = vectorNow(plane);
  if (vector === null) return;
  const paths = vector.way === "arrows" ? arrowsOf(vector, plane, place) : streamlinesOf(vector, plane, place);
  pen.save();
  pen.beginPath(); pen.rect(place.left, place.top, place.wide, place.tall); pen.clip();
  pen.lineJoin = pen.lineCap = "round";
  for (const [colour, width] of [["rgba(0, 0, 0, .75)", 3.2], ["#fff", 1.3]]) {
    pen.strokeStyle = colour; pen.lineWidth = width;
    for (const path of paths) stroke(pen, path);
  }
  pen.restore();
}

/* The lines of an arrow head at a point, for a direction of length one. */
const headOf = ([x, y], [dx, dy], size) => [null, [x - size * (dx + .55 * dy), y - size * (dy - .55 * dx)], [x, y], [x - size * (dx - .55 * dy), y - size * (dy + .55 * dx)]];

function arrowsOf({ along, across, longest }, plane, place) {
  const [a, b] = plane.axes, [columns, rows] = [shown.counts[a], shown.counts[b]], paths = [];
  const sx = place.wide / (place.x1 - place.x0), sy = place.tall / (place.y1 - place.y0);
  const [hop, jump] = [columns / place.wide, rows / place.tall].map(cells => Math.max(1, Math.round(ARROW * cells)));
  const room = Math.min(ARROW * 1.6, Math.max(ARROW * .9, .9 * Math.min(hop * place.wide / columns, jump * place.tall / rows)));
  for (let j = Math.floor((rows - 1) % jump / 2); j < rows; j += jump)
    for (let i = Math.floor((columns - 1) % hop / 2); i < columns; i += hop) {
      const k = indexOf(plane, i, j), u = along[k], v = across[k], size = Math.hypot(u, v) / longest * room;
      const far = Math.hypot(u * sx, v * sy);
      if (!Number.isFinite(size) || size < .8) continue;
      const way = [u * sx / far, -v * sy / far], x = place.px(middleOf(a, i)), y = place.py(middleOf(b, j));
      const [tail, tip] = [-1, 1].map(sign => [x + sign * size / 2 * way[0], y + sign * size / 2 * way[1]]);
      paths.push([tail, tip, ...headOf(tip, way, Math.min(6, .4 * size))]);
    }
  return paths;
}

/* Lines along a vector, kept a few pixels apart: each goes both ways from a point that none has come near. */
function streamlinesOf({ along, across, longest }, plane, place) {
  const [a, b] = plane.axes, [columns, rows] = [shown.counts[a], shown.counts[b]];
  const sx = place.wide / (place.x1 - place.x0), sy = place.tall / (place.y1 - place.y0);
  function wayAt(x, y) {  // the direction at a pixel, linear between points
    const s = (x - place.left) / place.wide * columns - .5, t = (place.top + place.tall - y) / place.tall * rows - .5;
    if (s < -.5 || t < -.5 || s > columns - .5 || t > rows - .5) return null;
    const i = Math.min(Math.max(Math.floor(s), 0), Math.max(columns - 2, 0)), j = Math.min(Math.max(Math.floor(t), 0), Math.max(rows - 2, 0));
    const p = Math.min(1, Math.max(0, s - i)), q = Math.min(1, Math.max(0, t - j)), i1 = Math.min(i + 1, columns - 1), j1 = Math.min(j + 1, rows - 1);
    const corners = [indexOf(plane, i, j), indexOf(plane, i1, j), indexOf(plane, i, j1), indexOf(plane, i1, j1)];
    const [u, v] = [along, across].map(part => (1 - q) * ((1 - p) * part[corners[0]] + p * part[corners[1]]) + q * ((1 - p) * part[corners[2]] + p * part[corners[3]]));
    if (!(Math.hypot(u, v) > 1e-4 * longest)) return null;
    const far = Math.hypot(u * sx, v * sy);
    return [u * sx / far, -v * sy / far];
  }
  const taken = new Set(), wide = Math.ceil(place.wide / TRACK) + 2, paths = [];
  const cellAt = ([x, y]) => Math.floor((y - place.top) / TRACK) * wide + Math.floor((x - place.left) / TRACK);
  for (let y = place.top + TRACK; y < place.top + place.tall; y += 2 * TRACK)
    for (let x = place.left + TRACK; x < place.left + place.wide; x += 2 * TRACK) {
      if (taken.has(cellAt([x, y]))) continue;
      const own = new Set([cellAt([x, y])]), path = [[x, y]];
      for (const sign of [1, -1]) {
        let point = [x, y], trail = [cellAt(point)];
        for (let count = 0; count < 600; count++) {
          const start = wayAt(...point), half = start && wayAt(point[0] + sign * start[0], point[1] + sign * start[1]);
          if (!half) break;
          point = [point[0] + 2 * sign * half[0], point[1] + 2 * sign * half[1]];
          const cell = cellAt(point);
          if (cell !== trail[trail.length - 1]) {
            if (taken.has(cell) || (own.has(cell) && !trail.slice(-3).includes(cell))) break;
            own.add(cell); trail.push(cell);
          }
          sign > 0 ? path.push(point) : path.unshift(point);
        }
      }
      if (path.length < 12) continue;
      own.forEach(cell => taken.add(cell));
      const middle = Math.floor(path.length / 2), way = wayAt(...path[middle]);
      paths.push(way ? [...path, ...headOf(path[middle], way, 6)] : path);
    }
  return paths;
}

/* What stands where the number under the mouse is told: how long an arrow can be. */
function hint() {
  const vector = dim > 1 ? vectorNow(panels[0].plane) : null;
  return vector !== null && vector.way === "arrows" ? `longest arrow: |${vector.name}| = ${said(vector.longest, 4)}` : "\u00a0";
}

/* Colours, and the numbers they stand for. */
function drawBar(range, tall, panel) {
  const canvas = at("bar");
  canvas.style.marginTop = `${panel.canvas.offsetTop - panel.box.offsetTop}px`;
  canvas.style.height = `${Math.ceil(tall + 48)}px`;
  const top = 10, left = 2, wide = 16, all = shown.range;
  const values = all === null ? [] : all[0] === all[1] && at("range").value !== "own" ? [all[0]] : isLog() ? powers(...range) : ticks(...range, Math.max(2, tall / 40));
  const labels = labelsOf(values), rough = canvas.getContext("2d");
  rough.font = FONT;
  canvas.style.width = `${Math.ceil(Math.max(90, ...labels.map(label => rough.measureText(label).width + left + wide + 12)))}px`;
  const [pen, width] = penOf(canvas);
  for (let level = 0; level < 256; level++) {
    pen.fillStyle = `rgb(${table[level]})`;
    pen.fillRect(left, top + tall * (255 - level) / 256, wide, tall / 256 + 1);
  }
  pen.strokeStyle = pen.fillStyle = styled("--pale");
  pen.strokeRect(left - .5, top - .5, wide + 1, tall + 1);
  pen.textBaseline = "middle"; pen.textAlign = "left";
  const share = shareOf(range);
  labels.forEach((label, k) => {
    const y = top + tall * (1 - share(values[k]));
    stroke(pen, [[left + wide, y], [left + wide + 4, y]]);
    pen.fillText(label, left + wide + 7, y);
  });
  pen.fillStyle = styled("--ink"); pen.textBaseline = "top"; pen.font = `bold ${FONT}`;
  pen.fillText(fitted(pen, shown.name, width), 0, top + tall + 9);
  if (all === null) { pen.font = FONT; pen.fillText("no finite number", 0, top + tall + 24); }
}

function draw() {
  const frame = frameNow(), values = valuesOf(shown, frame), range = rangeNow(values), time = data.times[frame];
  if (at("range").value !== "own") [at("low").value, at("high").value] = range.map(value => said(value, digitsOf(range)));
  if (dim === 1) {
    const x = Array.from(values, (_, k) => middleOf(0, k)), log = isLog();
    panels[0].canvas.style.height = `${Math.max(220, window.innerHeight * .6)}px`;
    const pad = (range[1] - range[0]) * .04, span = log ? range : [range[0] - pad, range[1] + pad];
    panels[0].chart = { lines: [{ x, y: values, colour: "#2b7bba" }], captions: [data.axes[0], shown.name], log: [false, log], span };
    plot(panels[0].canvas, panels[0].chart);
  } else {
    const before = at("bar").style.width;
    for (const panel of panels) drawPlane(panel, values, range, panels.length);
    drawBar(range, panels[0].place.tall, panels[0]);
    if (at("bar").style.width !== before) {  // which leaves another width to the planes
      for (const panel of panels) drawPlane(panel, values, range, panels.length);
      drawBar(range, panels[0].place.tall, panels[0]);
    }
  }
  at("time").value = `time ${time === null ? "?" : said(time, 6)}  (${frame + 1}/${data.times.length})`;
  for (const { plane, slider, label } of panels.filter(each => each.slider)) {
    slider.value = layers[plane.normal];
    label.textContent = `${data.axes[plane.normal]} = ${said(middleOf(plane.normal, layers[plane.normal]), 4)}`;
  }
  at("value").value = hint();
  drawCurves();
}

let panels = [];

/* A canvas for each plane, with a slider for the layer it shows. */
function arrange() {
  panels = planesNow().map(plane => {
    const box = Object.assign(document.createElement("div"), { className: "panel" }), canvas = document.createElement("canvas");
    const panel = { plane, canvas, box };
    if (plane.normal !== null) {
      const row = Object.assign(document.createElement("div"), { className: "row" });
      panel.slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: shown.counts[plane.normal] - 1, step: 1 });
      panel.slider.setAttribute("aria-label", `Layer along ${data.axes[plane.normal]}`);
      panel.label = document.createElement("output");
      panel.slider.oninput = () => { layers[plane.normal] = Number(panel.slider.value); draw(); };
      row.append(panel.label, panel.slider);
      box.append(row);
    }
    box.append(canvas);
    canvas.onmousemove = event => point(panel, event);
    canvas.onclick = event => pick(panel, event);
    canvas.onmouseleave = () => { at("value").value = hint(); if (dim === 1) plot(canvas, panel.chart); };
    return panel;
  });
  at("panels").replaceChildren(...panels.map(panel => panel.box));
  at("panels").classList.toggle("three", panels.length > 1);
  draw();
}

function choose() {
  shown = choiceOf(at("field").value);
  table = tableOf(maps[at("colours").value]);
  layers = shown.counts.map((n, axis) => layers[axis] === undefined || layers[axis] >= n ? Math.floor(n / 2) : layers[axis]);
  at("log").disabled = shown.positive === null;
  arrange();
}

/* The places in a plane under the mouse; none beside it. */
function placeUnder({ canvas, plane, place }, event) {
  const frame = canvas.getBoundingClientRect(), [a, b] = plane.axes;
  const right = (event.clientX - frame.left - place.left) / place.wide, up = (frame.top + place.top + place.tall - event.clientY) / place.tall;
  if (right < 0 || right > 1 || up < 0 || up > 1) return null;
  return [[right, a], [up, b]].map(([part, axis]) => Math.min(shown.counts[axis] - 1, Math.floor(part * shown.counts[axis])));
}

function point(panel, event) {
  if (dim === 1) {
    const frame = panel.canvas.getBoundingClientRect();
    const near = plot(panel.canvas, panel.chart, [event.clientX - frame.left, event.clientY - frame.top]);
    at("value").value = near ? `${shown.name} = ${said(near.line.y[near.k], 7)} at ${data.axes[0]} = ${said(near.line.x[near.k])}` : "\u00a0";
    return;
  }
  const place = placeUnder(panel, event);
  if (place === null) { at("value").value = hint(); return; }
  const { plane } = panel, k = indexOf(plane, ...place), all = [...plane.axes.map((axis, n) => [axis, place[n]]), ...(plane.normal === null ? [] : [[plane.normal, layers[plane.normal]]])];
  const where = all.sort((one, other) => one[0] - other[0]).map(([axis, n]) => `${data.axes[axis]} = ${said(middleOf(axis, n))}`).join(", ");
  const parts = shown.length ? ` (${shown.parts.map(number => said(numbersOf(number, frameNow())[k])).join(", ")})` : "";
  const values = valuesOf(shown, frameNow());
  at("value").value = `${shown.name} = ${said(values[k], digitsOf(rangeNow(values)))}${parts} at ${where}`;
}

/* A click in one of several planes moves the others there. */
function pick(panel, event) {
  const place = dim === 3 ? placeUnder(panel, event) : null;
  if (place === null) return;
  panel.plane.axes.forEach((axis, n) => { layers[axis] = place[n]; });
  draw();
}

function play() {
  if (timer === null) {
    timer = setInterval(() => { at("frame").value = (frameNow() + 1) % data.times.length; draw(); }, 100);
  } else {
    clearInterval(timer);
    timer = null;
  }
  at("play").textContent = timer === null ? "Play" : "Pause";
}

/* Curves of tables, each with a bar at the time of the frame. */
const curves = data.tables.flatMap(table => table.columns.map(column => ({
  name: data.tables.length > 1 ? `${table.name}: ${column.name}` : column.name, times: table.times, values: column.values,
})));

function nearestTo(times, time) {
  let best = 0;
  times.forEach((each, k) => { if (each !== null && Math.abs(each - time) < Math.abs(times[best] - time)) best = k; });
  return best;
}

function drawCurves() {
  const time = data.times[frameNow()], log = [at("logx").checked, at("logy").checked];
  for (const { figure, name, times, values } of curves.filter(each => each.figure && !each.figure.hidden)) {
    const [caption, canvas] = [figure.querySelector("span"), figure.querySelector("canvas")], k = nearestTo(times, time);
    caption.textContent = values[k] === null || values[k] === undefined ? "none" : said(values[k], 6);
    plot(canvas, { lines: [{ x: times, y: values, colour: "#2b7bba" }], captions: ["time", ""], log, marker: time, ringed: [k] });
  }
}

function addCurves() {
  at("curves").hidden = !curves.length;
  at("main").classList.toggle("curves", curves.length > 0);
  at("chooser").hidden = curves.length <= FIRST_CURVES;
  curves.forEach((curve, number) => {
    const figure = curve.figure = document.createElement("figure"), caption = document.createElement("figcaption");
    caption.append(Object.assign(document.createElement("b"), { textContent: curve.name, title: curve.name }), document.createElement("span"));
    figure.append(caption, document.createElement("canvas"));
    figure.hidden = number >= FIRST_CURVES;
    const canvas = figure.querySelector("canvas");
    canvas.onclick = event => {
      const frame = canvas.getBoundingClientRect(), lines = [{ x: curve.times, y: curve.values, colour: "#2b7bba" }];
      const near = plot(canvas, { lines, captions: ["time", ""], log: [at("logx").checked, at("logy").checked] }, [event.clientX - frame.left, event.clientY - frame.top]);
      if (near) at("frame").value = nearestTo(data.times, curve.times[near.k]);
      draw();
    };
    const label = document.createElement("label"), box = Object.assign(document.createElement("input"), { type: "checkbox", checked: !figure.hidden });
    box.onchange = () => { figure.hidden = !box.checked; draw(); };
    label.append(box, ` ${curve.name}`);
    at("chooser").append(label);
    at("charts").append(figure);
  });
}

const lengths = data.vectors.map((vector, number) => new Option(`|${vector.name}|`, `v${number}`));
at("field").replaceChildren(...data.fields.map((each, number) => new Option(each.name, `f${number}`)), ...(dim > 1 ? lengths : []));
at("colours").replaceChildren(...Object.keys(maps).map(name => new Option(name)));
at("overlay").replaceChildren(new Option("none", ""), ...data.vectors.flatMap((vector, number) => ["arrows", "streamlines"].map(way => new Option(`${vector.name}: ${way}`, `${number}:${way}`))));
at("planes").replaceChildren(new Option("all three", "all"), ...[...data.axes].reverse().map(axis => new Option(`along ${axis}`, axis)));
const sure = data.vectors.findIndex(vector => vector.sure && vector.parts.includes(0));
if (dim > 1 && sure >= 0) { at("field").value = `v${sure}`; at("overlay").value = `${sure}:arrows`; }
at("overlays").hidden = dim === 1 || !data.vectors.length;
at("plane-choice").hidden = dim < 3;
at("colour-choice").hidden = at("aspect-choice").hidden = at("bar").hidden = dim === 1;
at("timeline").hidden = last === 0;
const sides = data.lower.map((low, axis) => data.upper[axis] - low);
at("aspect").checked = Math.max(...sides) <= 20 * Math.min(...sides);
at("frame").max = last;
at("frame").value = last;
at("notes").textContent = data.notes.join(", ");
at("field").onchange = at("colours").onchange = choose;
at("planes").onchange = arrange;
for (const name of ["overlay", "range", "log", "aspect", "logx", "logy"]) at(name).onchange = draw;
at("low").onchange = at("high").onchange = () => { at("range").value = "own"; draw(); };
at("frame").oninput = draw;
at("play").onclick = play;
window.addEventListener("resize", draw);
addCurves();
choose();
