set("log", true); set("log", false); set("range", "now"); set("range", "all");
for (const option of at("overlay").options) set("overlay", option.value);
for (const option of at("field").options) set("field", option.value);
set("aspect", false); set("logx", true); set("logy", true); set("field", "FIELD");
texts.length = 0;
draw();
const distinct = dim === 1 ? 0 : labelsOf(ticks(...rangeNow(valuesOf(shown, frameNow())), 5));
tell({ texts, hidden: at("timeline").hidden, distinct, value: dim > 1 ? hoverAt(panels[0], 0, 0) : "" });
