const told = {}, plane = panels[0].plane;
for (const way of ["arrows", "streamlines"]) {
  set("overlay", "0:" + way);
  const vector = vectorNow(plane), paths = (way === "arrows" ? arrowsOf : streamlinesOf)(vector, plane, panels[0].place);
  told[way] = paths.map(path => ({ from: path[0], to: path[path.indexOf(null) < 0 ? path.length - 1 : path.indexOf(null) - 1] }));
}
told.place = panels[0].place; told.hint = hint();
set("overlay", "0:arrows"); told.hint = hint();
tell(told);
