"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = name => document.getElementById(name);
const said = (value, digits = 5) => Number(value.toPrecision(digits)).toString();
const styled = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const FONT = "12px system-ui, sans-serif";

/* A canvas of as many pixels as the screen has for it, cleared, and what draws on it. */
function penOf(canvas) {
  const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(box.width * scale); canvas.height = Math.round(box.height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = FONT;
  return [pen, box.width, box.height];
}

/* Round numbers between two ends, about so many. */
function ticks(low, high, count, whole) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].find(factor => factor * power >= rough) * power;
  if (whole) step = Math.max(1, Math.round(step));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
}

/* Powers of ten between two ends; with 2 and 5 times them, or round numbers, where these are few. */
function powers(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  if (last - first < 2) {
    const some = [first - 1, first, last].flatMap(k => [1, 2, 5].map(factor => Number(`${factor}e${k}`)));
    const inside = [...new Set(some)].filter(value => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
    return inside.length > 2 ? inside.sort((one, other) => one - other) : ticks(low, high, 4).filter(value => value > 0);
  }
  const step = Math.max(1, Math.ceil((last - first) / 7)), found = [];
  for (let k = first; k <= last; k += step) found.push(10 ** k);
  return found;
}

/* Each number with as many digits as tell it from its neighbours, and no more than needed. */
function labelsOf(values) {
  const gaps = values.slice(1).map((value, k) => Math.abs(value - values[k])).filter(gap => gap > 0);
  const gap = gaps.length ? Math.min(...gaps) : 0;
  return values.map(value => {
    if (Math.abs(value) < gap * 1e-6) return "0";
    const digits = gap ? Math.min(15, Math.max(1, Math.ceil(Math.log10(Math.abs(value) / gap) + .5) + 1)) : 6;
    const round = Number(value.toPrecision(digits)), size = Math.abs(round);
    return size !== 0 && (size >= 1e6 || size < 1e-4) ? round.toExponential().replace("e+", "e") : String(round);
  });
}

function spanOf(values, log, whole) {
  let low = Infinity, high = -Infinity;
  for (const list of values) for (const value of list)
    if (value !== null && Number.isFinite(value) && (!log || value > 0)) { low = Math.min(low, value); high = Math.max(high, value); }
  if (low > high) return log ? [1, 10] : [0, 1];
  if (whole) return [Math.min(low, 0), high * 1.04 || 1];
  if (log) return low === high ? [low / 10, high * 10] : [low, high];
  const pad = low === high ? Math.abs(low) * .1 || 1 : (high - low) * .04;
  return [low - pad, high + pad];
}

function stroke(pen, points) {
  pen.beginPath();
  let drawing = false;
  for (const point of points) {
    if (point) drawing ? pen.lineTo(...point) : pen.moveTo(...point);
    drawing = Boolean(point);
  }
  pen.stroke();
}

function fitted(pen, text, room) {
  while (text.length > 4 && pen.measureText(text).width > room) text = text.slice(0, -2) + "…";
  return text;
}

/* Lines over two axes, a bar at `marker`, a ring at the point under the mouse, which is given back with all `places`. */
function plot(canvas, { lines, captions, log = [false, false], whole = [false, false], span, marker = null, ringed = [] }, hover) {
  const [pen, width, height] = penOf(canvas), ink = styled("--ink"), pale = styled("--pale"), thin = styled("--line");
  const [xl, xh] = spanOf(lines.map(line => line.x), log[0]), [yl, yh] = span || spanOf(lines.map(line => line.y), log[1], whole[1]);
  const xt = log[0] ? powers(xl, xh) : ticks(xl, xh, Math.max(2, width / 90), whole[0]);
  const yt = log[1] ? powers(yl, yh) : ticks(yl, yh, Math.max(2, height / 45), whole[1]);
  const yLabels = labelsOf(yt);
  const left = (captions[1] ? 34 : 14) + Math.max(0, ...yLabels.map(label => pen.measureText(label).width)), bottom = 40, top = 8, right = 14;
  const wide = width - left - right, tall = height - top - bottom;
  const share = (value, low, high, by) => by ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const px = x => left + share(x, xl, xh, log[0]) * wide, py = y => top + tall - share(y, yl, yh, log[1]) * tall;
  pen.strokeStyle = thin; pen.fillStyle = pale; pen.lineWidth = 1;
  pen.textAlign = "center"; pen.textBaseline = "top";
  let end = -Infinity;
  labelsOf(xt).forEach((label, k) => {
    const x = px(xt[k]), half = pen.measureText(label).width / 2;
    stroke(pen, [[x, top], [x, top + tall]]);
    if (x - half < end + 8) return;
    pen.fillText(label, x, top + tall + 6);
    end = x + half;
  });
  pen.textAlign = "right"; pen.textBaseline = "middle";
  yLabels.forEach((label, k) => { const y = py(yt[k]); stroke(pen, [[left, y], [left + wide, y]]); pen.fillText(label, left - 6, y); });
  pen.fillStyle = ink; pen.textAlign = "center"; pen.textBaseline = "bottom";
  pen.fillText(fitted(pen, captions[0], wide), left + wide / 2, height - 2);
  pen.save(); pen.translate(12, top + tall / 2); pen.rotate(-Math.PI / 2); pen.textBaseline = "middle";
  pen.fillText(fitted(pen, captions[1], tall), 0, 0); pen.restore();
  if (marker !== null && (!log[0] || marker > 0)) {
    pen.strokeStyle = ink; pen.lineWidth = 1; pen.setLineDash([4, 3]);
    stroke(pen, [[px(marker), top], [px(marker), top + tall]]);
    pen.setLineDash([]);
  }
  const places = [];
  for (const line of [...lines.filter(each => each.faint), ...lines.filter(each => !each.faint)]) {
    pen.strokeStyle = line.faint ? pale : line.colour; pen.lineWidth = line.faint ? .6 : 1.8; pen.setLineDash(line.dash || []);
    const drawn = (value, by) => value !== null && Number.isFinite(value) && (!by || value > 0);
    const points = Array.from(line.y, (y, k) => drawn(y, log[1]) && drawn(line.x[k], log[0]) ? [px(line.x[k]), py(y)] : null);
    stroke(pen, points);
    pen.setLineDash([]);
    if (points.filter(Boolean).length <= 40 && !line.faint)
      for (const point of points) if (point) { pen.fillStyle = line.colour; pen.beginPath(); pen.arc(...point, 2.2, 0, 7); pen.fill(); }
    points.forEach((point, k) => point && places.push({ point, line, k }));
  }
  const ring = ({ point, line }) => { pen.strokeStyle = line.colour; pen.lineWidth = 2; pen.beginPath(); pen.arc(...point, 5, 0, 7); pen.stroke(); };
  places.filter(each => ringed.includes(each.k)).forEach(ring);
  if (hover) {
    const far = ({ point }) => Math.hypot(point[0] - hover[0], point[1] - hover[1]);
    const near = places.reduce((best, each) => best === null || far(each) < far(best) ? each : best, null);
    if (near !== null && far(near) < 40) { ring(near); return near; }
  }
  return null;
}
