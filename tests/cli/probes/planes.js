set("field", "f0"); set("overlay", ""); set("colours", "gray"); set("range", "now");
const told = { planes: panels.map(panel => panel.plane), cells: [] };
layers = [1, 2, 0]; draw();
for (const panel of panels) {
  const [a, b] = panel.plane.axes, cells = [];
  for (let j = 0; j < shown.counts[b]; j++) cells.push(Array.from({ length: shown.counts[a] }, (_, i) => pixelAt(panel, i, j)[0]));
  told.cells.push(cells);
}
told.labels = panels.map(panel => panel.label.textContent);
const { canvas, place } = panels[0], frame = canvas.getBoundingClientRect();
canvas.dispatchEvent(new MouseEvent("click", { clientX: frame.left + place.left + .9 * place.wide, clientY: frame.top + place.top + .1 * place.tall }));
told.picked = layers.slice();
panels[0].slider.value = 2; panels[0].slider.dispatchEvent(new Event("input"));
told.moved = layers.slice();
set("planes", "x");
told.one = panels.map(panel => panel.plane.normal);
tell(told);
