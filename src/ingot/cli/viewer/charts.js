const colours = ["#2b7bba", "#d1603d", "#3a9d6a", "#b8860b", "#8a63b8", "#1a8fa0", "#b8528a", "#7a8794", "#555"];
const dashes = [[], [6, 4], [2, 3], [8, 3, 2, 3]];
const quantity = label => data.quantities.find(each => each.label === label);

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

function draw(canvas, chart, hover) {
  const y0 = quantity(chart.ys[0]), x0 = quantity(chart.xs[0]);
  const captions = [captionOf(chart.xs), captionOf(chart.ys)];
  return plot(canvas, { lines: linesOf(chart), captions, log: [false, y0.log], whole: [x0.whole, y0.whole] }, hover);
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
