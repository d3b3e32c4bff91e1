function set(name, value, event = "change") {
  const each = at(name);
  if (each.type === "checkbox") each.checked = value; else each.value = value;
  each.dispatchEvent(new Event(event));
}
function pixelAt(panel, i, j) {
  const { left, top, wide, tall } = panel.place, [a, b] = panel.plane.axes;
  const x = left + (i + .5) / shown.counts[a] * wide, y = top + tall - (j + .5) / shown.counts[b] * tall;
  return [...panel.canvas.getContext("2d").getImageData(Math.round(x), Math.round(y), 1, 1).data];
}
function hoverAt(panel, i, j) {
  const frame = panel.canvas.getBoundingClientRect(), { left, top, wide, tall } = panel.place, [a, b] = panel.plane.axes;
  const event = { clientX: frame.left + left + (i + .5) / shown.counts[a] * wide, clientY: frame.top + top + tall - (j + .5) / shown.counts[b] * tall };
  panel.canvas.dispatchEvent(new MouseEvent("mousemove", event));
  return at("value").value;
}
const texts = [];
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { texts.push(text); return fillText.call(this, text, ...rest); };
