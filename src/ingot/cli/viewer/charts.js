"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = name => document.getElementById(name);
const colours = ["#2b7bba", "#d1603d", "#3a9d6a", "#b8860b", "#8a63b8", "#1a8fa0", "#b8528a", "#7a8794", "#555"];
const dashes = [[], [6, 4], [2, 3], [8, 3, 2, 3]];
const quantity = label => data.quantities.find(each => each.label === label);
const said = value => Number(value.toPrecision(5)).toString();
const styled = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* The lines of a chart: of every quantity and every row, or of one row alone. */
function linesOf(chart) {
  const lines = [];
  chart.ys.forEach((label, hue) => {
    const y = quantity(label), x = quantity(chart.xs[hue % chart.xs.length]);
    data.rows.forEach((row, place) => {
      if (chart.row !== undefined && chart.row !== "" && Number(chart.row) !== place) return;
      const several = chart.ys.length > 1, mean = data.mean === place;
      const alike = new Set(chart.ys.map(each => quantity(each).group)).size === 1;
      const name = several ? `${alike && y.short ? y.short : label}${data.rows.length > 1 ? " " + row : ""}` : row;
      lines.push({
        name, x: x.values[place], y: y.values[place], faint: data.mean !== null && !mean && chart.row === undefined && !several,
        hidden: several && data.mean !== null && !mean && !chart.row,
        colour: mean && !several && chart.row !== undefined ? styled("--ink") : colours[(several ? hue : mean ? 0 : place) % colours.length], dash: several ? dashes[place % dashes.length] : [],
      });
    });
  });
  return lines.filter(line => !line.hidden);
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

function spanOf(values, log, whole) {
  let low = Infinity, high = -Infinity;
  for (const list of values) for (const value of list)
    if (value !== null && (!log || value > 0)) { low = Math.min(low, value); high = Math.max(high, value); }
  if (low > high) return [0, 1];
  if (whole) return [Math.min(low, 0), high * 1.04 || 1];
  if (log) return low === high ? [low / 10, high * 10] : [low, high];
  const pad = low === high ? Math.abs(low) * .1 || 1 : (high - low) * .04;
  return [low - pad, high + pad];
}

function draw(canvas, chart, hover) {
  const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
  canvas.width = box.width * scale; canvas.height = box.height * scale;
  const pen = canvas.getContext("2d"), ink = styled("--ink"), pale = styled("--pale"), thin = styled("--line");
  pen.scale(scale, scale);
  pen.font = "12px system-ui, sans-serif";
  const lines = linesOf(chart), y0 = quantity(chart.ys[0]), log = y0.log, whole = y0.whole;
  const [xl, xh] = spanOf(lines.map(line => line.x)), [yl, yh] = spanOf(lines.map(line => line.y), log, whole);
  const xt = ticks(xl, xh, Math.max(2, box.width / 90), quantity(chart.xs[0]).whole);
  const yt = log ? powers(yl, yh) : ticks(yl, yh, Math.max(2, box.height / 45), whole);
  const left = 34 + Math.max(0, ...yt.map(value => pen.measureText(said(value)).width)), bottom = 40, top = 8, right = 14;
  const wide = box.width - left - right, tall = box.height - top - bottom;
  const px = x => left + (x - xl) / (xh - xl) * wide;
  const py = y => top + tall - (log ? Math.log(y / yl) / Math.log(yh / yl) : (y - yl) / (yh - yl)) * tall;
  pen.strokeStyle = thin; pen.fillStyle = pale; pen.lineWidth = 1;
  pen.textAlign = "center"; pen.textBaseline = "top";
  for (const x of xt) { stroke(pen, [[px(x), top], [px(x), top + tall]]); pen.fillText(said(x), px(x), top + tall + 6); }
  pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const y of yt) { stroke(pen, [[left, py(y)], [left + wide, py(y)]]); pen.fillText(said(y), left - 6, py(y)); }
  pen.fillStyle = ink; pen.textAlign = "center"; pen.textBaseline = "bottom";
  pen.fillText(fitted(pen, captionOf(chart.xs), wide), left + wide / 2, box.height - 2);
  pen.save(); pen.translate(12, top + tall / 2); pen.rotate(-Math.PI / 2); pen.textBaseline = "middle";
  pen.fillText(fitted(pen, captionOf(chart.ys), tall), 0, 0); pen.restore();
  const places = [];
  for (const line of [...lines.filter(each => each.faint), ...lines.filter(each => !each.faint)]) {
    pen.strokeStyle = line.faint ? pale : line.colour; pen.lineWidth = line.faint ? .6 : 1.8; pen.setLineDash(line.dash);
    const points = line.y.map((y, k) => y === null || line.x[k] === null || (log && y <= 0) ? null : [px(line.x[k]), py(y)]);
    stroke(pen, points);
    pen.setLineDash([]);
    if (points.filter(Boolean).length <= 40 && !line.faint)
      for (const point of points) if (point) { pen.fillStyle = line.colour; pen.beginPath(); pen.arc(...point, 2.2, 0, 7); pen.fill(); }
    points.forEach((point, k) => point && places.push({ point, line, k }));
  }
  if (hover) {
    const far = ({ point }) => Math.hypot(point[0] - hover[0], point[1] - hover[1]);
    const near = places.reduce((best, each) => best === null || far(each) < far(best) ? each : best, null);
    if (near !== null && far(near) < 40) {
      pen.strokeStyle = near.line.colour; pen.lineWidth = 2;
      pen.beginPath(); pen.arc(...near.point, 5, 0, 7); pen.stroke();
      return near;
    }
  }
  return null;
}

function powers(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first) / 7)), found = [];
  for (let k = first; k <= last; k += step) found.push(10 ** k);
  return found.length ? found : [low];
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

function captionOf(labels) {
  const some = labels.map(quantity), units = new Set(some.map(each => each.unit));
  const names = labels.length > 1 ? [...new Set(some.map(each => each.group))] : labels;
  return names.join(", ") + (units.size === 1 && some[0].unit ? ` [${some[0].unit}]` : "");
}

/* A canvas with a legend, which tells the number under the mouse. */
function show(figure, chart) {
  const canvas = figure.querySelector("canvas") || figure.appendChild(document.createElement("canvas"));
  const legend = figure.querySelector("figcaption") || figure.insertBefore(document.createElement("figcaption"), canvas);
  const hint = figure.querySelector(".hint") || figure.appendChild(Object.assign(document.createElement("div"), { className: "hint" }));
  legend.replaceChildren(...legendOf(chart));
  draw(canvas, chart);
  canvas.onmousemove = event => {
    const box = canvas.getBoundingClientRect(), near = draw(canvas, chart, [event.clientX - box.left, event.clientY - box.top]);
    hint.style.display = near ? "block" : "none";
    if (!near) return;
    const { line, k, point } = near;
    hint.textContent = `${line.name ? line.name + ": " : ""}${captionOf(chart.xs)} = ${said(line.x[k])}, ${said(line.y[k])} at step ${data.steps[k]}`;
    const right = point[0] > box.width / 2;
    hint.style.left = right ? "auto" : `${canvas.offsetLeft + point[0] + 10}px`;
    hint.style.right = right ? `${figure.clientWidth - canvas.offsetLeft - point[0] + 10}px` : "auto";
    hint.style.top = `${canvas.offsetTop + point[1] - 30}px`;
  };
  canvas.onmouseleave = () => { hint.style.display = "none"; draw(canvas, chart); };
}

function legendOf(chart) {
  const title = document.createElement("span");
  title.append(Object.assign(document.createElement("b"), { textContent: captionOf(chart.ys) }), ` over ${captionOf(chart.xs)}`);
  const names = linesOf(chart).filter(line => !line.faint && line.name).map(line => {
    const entry = document.createElement("span"), mark = document.createElement("i");
    mark.style.background = line.colour;
    entry.append(mark, line.name);
    return entry;
  });
  return [title, ...names];
}

function explore() {
  show(at("explorer"), { xs: [at("x").value], ys: [at("y").value], row: at("point").value });
}

function showAll() {
  data.charts.forEach((chart, k) => {
    const figure = at("charts").children[k] || at("charts").appendChild(document.createElement("figure"));
    show(figure, chart);
  });
  if (data.quantities.length) explore();
}

const labels = data.quantities.map(each => each.label);
at("x").replaceChildren(...labels.map(label => new Option(label)));
at("y").replaceChildren(...labels.map(label => new Option(label)));
at("point").replaceChildren(new Option("all", ""), ...data.rows.map((row, k) => new Option(row || "the only one", k)));
if (data.charts.length) { at("x").value = data.charts[0].xs[0]; at("y").value = data.charts[0].ys[0]; }
at("x").onchange = at("y").onchange = at("point").onchange = explore;
window.addEventListener("resize", showAll);
showAll();
