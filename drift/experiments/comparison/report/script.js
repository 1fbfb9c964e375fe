"use strict";
// Tables sort by their headings; curves are drawn by plotly.js, and again in other colours as the
// page turns dark or is printed. Everything that a mouse does to them, buttons do as well.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  // Plotly reads tags and entities in names, which are anyone's.
  for (const model of data.streams.flatMap((stream) => stream.models))
    model.name = model.name.replace(/[&<>]/g, (one) => `&#${one.charCodeAt(0)};`);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 40rem)");
  const root = document.documentElement;

  // --- tables -----------------------------------------------------------------------------------

  const sortBy = (heading) => {
    const table = heading.closest("table");
    const column = heading.cellIndex;
    const before = heading.getAttribute("aria-sort");
    const down = before ? before === "ascending" : heading.dataset.first === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.cells[column].dataset.value;
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === ""); // what is missing stays last
      const sign = down ? -1 : 1;
      const numbers = heading.classList.contains("number");
      return sign * (numbers ? Number(x) - Number(y) : x.localeCompare(y));
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
  };
  for (const button of document.querySelectorAll("thead button"))
    button.addEventListener("click", () => sortBy(button.closest("th")));

  // --- figures ----------------------------------------------------------------------------------

  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const isDark = () => dark.matches && !root.dataset.print;
  const look = (model) => ({
    color: model.baseline || !model.main ? colour("soft") : model.colours[isDark() ? 1 : 0],
    dash: model.dash,
    width: model.baseline ? 1.3 : model.main ? 2.2 : 0.9,
  });
  const axis = (title, more) => ({
    title: { text: title, standoff: 8 }, gridcolor: colour("line"), linecolor: colour("soft"),
    zeroline: false, automargin: true, ...more,
  });
  const layout = (x, y, more) => ({
    paper_bgcolor: colour("paper"), plot_bgcolor: colour("paper"), showlegend: false,
    font: { color: colour("ink"), family: "system-ui, sans-serif", size: narrow.matches ? 12 : 13.5 },
    margin: { l: 8, r: 8, t: 26, b: 8 }, hovermode: "closest", dragmode: "zoom",
    hoverlabel: { bgcolor: colour("band"), font: { color: colour("ink") } },
    xaxis: x, yaxis: y, ...more,
  });
  const options = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset" };

  // Names at the ends of curves, apart from each other by a line's height.
  const endLabels = (curves, low, high, height) => {
    const ends = curves
      .filter((curve) => curve.label)
      .map((curve) => ({ curve, at: curve.y.findLast((y) => y !== null) }))
      .filter((end) => end.at !== undefined)
      .sort((a, b) => a.at - b.at);
    const least = ((high - low) * 17) / height;
    let last = -Infinity;
    for (const end of ends) last = end.placed = Math.max(end.at, last + least);
    const over = ends.length ? ends.at(-1).placed - high : 0;
    if (over > 0)
      for (let i = ends.length - 1, top = high; i >= 0; i--) {
        ends[i].placed = Math.min(ends[i].placed, top);
        top = ends[i].placed - least;
      }
    return ends.map(({ curve, placed }) => ({
      text: curve.name, x: 1, xref: "paper", xanchor: "left", xshift: 6, y: placed, yref: "y",
      yanchor: "middle", showarrow: false, font: { color: curve.line.color },
    }));
  };

  // Names stand beside the curves, or in a legend where they would take the curves' place.
  const margin = (plot, curves) => {
    const longest = Math.max(...curves.filter((one) => one.label).map((one) => one.name.length));
    const wide = 14 + 7.4 * longest;
    const legend = wide > 0.3 * plot.clientWidth;
    for (const curve of curves) curve.showlegend = curve.label;
    const lines = curves.filter((one) => one.label).length;
    plot.style.height = legend ? `calc(20rem + ${1.3 * lines}rem)` : "";
    return { legend, layout: {
      showlegend: legend, legend: { orientation: "h", y: -0.25, traceorder: "reversed" },
      margin: { l: 8, t: 26, b: 8, r: legend ? 8 : wide } } };
  };

  const overTime = (plot, stream, measure) => {
    const known = data.measures[measure];
    const curves = stream.models.map((model) => ({
      type: "scatter", mode: "lines", name: model.name, x: stream.middles,
      y: model.windows[measure].map((y) => (y === null ? null : y * known.factor)),
      line: look(model), label: model.main || model.baseline,
      hovertemplate: "%{fullData.name}: %{y:.4~g}<br>row %{x:,d}<extra></extra>",
    }));
    curves.reverse(); // the best is drawn over the others
    const all = curves.flatMap((curve) => curve.y).filter((y) => y !== null);
    if (!all.length) all.push(0, 1);
    let [low, high] = [Math.min(...all), Math.max(...all)];
    if (known.zero) low = Math.min(0, low);
    const room = (high - low || 1) * 0.04;
    [low, high] = [known.zero && low === 0 ? 0 : low - room, high + room];
    const shapes = stream.drifts.flatMap((drift) => [
      { type: "line", x0: drift.row, x1: drift.row, y0: 0, y1: 1, yref: "paper",
        line: { color: colour("shift"), width: 1.5, dash: "dot" } },
      ...(drift.width > 1 ? [{ type: "rect", x0: drift.row - drift.width / 2,
        x1: drift.row + drift.width / 2, y0: 0, y1: 1, yref: "paper", line: { width: 0 },
        fillcolor: colour("shift"), opacity: 0.12 }] : []),
    ]);
    const marks = stream.drifts.map((drift) => ({
      text: stream.drifts.length > 6 ? "▾" : "drift", x: drift.row, y: 1, yref: "paper",
      yanchor: "bottom", showarrow: false, font: { color: colour("shift") },
    }));
    const names = margin(plot, curves);
    const labels = names.legend ? [] : endLabels(curves, low, high, plot.clientHeight - 70);
    return Plotly.react(plot, curves, layout(
      axis("row", { range: [0, stream.rows], tickformat: ",d", nticks: narrow.matches ? 5 : 10 }),
      axis(known.title, { range: [low, high] }),
      { shapes, annotations: [...marks, ...labels], ...names.layout }), options);
  };

  const against = (plot, stream) => {
    const known = data.measures[stream.headline];
    const models = stream.models.filter((model) => model.value !== null && model.cost > 0);
    const points = models.map((model) => ({
      type: "scatter", mode: "markers+text", name: model.name, x: [model.cost],
      y: [known.factor * model.value], text: [model.name], cliponaxis: false,
      label: model.main || model.baseline,
      textposition: "top center", textfont: { color: look(model).color },
      marker: { color: look(model).color, size: 11, symbol: model.baseline ? "circle-open" : "circle" },
      hovertemplate: "%{fullData.name}: %{y:.4~g} at %{x:.1f} µs<extra></extra>",
    }));
    const { legend, layout: names } = margin(plot, points);
    for (const point of points) if (legend || !point.label) point.mode = "markers";
    const costs = models.map((model) => Math.log10(model.cost));
    const values = models.map((model) => known.factor * model.value);
    const [low, high] = [Math.min(...costs, 1), Math.max(...costs, 2)];
    return Plotly.react(plot, points, layout(
      axis("time an example (µs, logarithmic)", {
        type: "log", dtick: 1, range: [low - 0.35, high + 0.45] }),
      axis(known.title, { range: [0, 1.15 * Math.max(...values, known.factor / 100)] }),
      legend ? names : {}), options);
  };

  const drawings = [];
  for (const figure of document.querySelectorAll("figure[data-stream]")) {
    const stream = data.streams[Number(figure.dataset.stream)];
    const plot = figure.querySelector(".plot");
    const choice = figure.querySelector("select");
    const draw = () => (choice ? overTime(plot, stream, choice.value) : against(plot, stream));
    if (choice) choice.addEventListener("change", draw);
    const zoom = (factor, shift = 0) => {
      const change = {};
      for (const name of shift ? ["xaxis"] : ["xaxis", "yaxis"]) {
        const [from, to] = plot._fullLayout[name].range;
        const half = ((to - from) * factor) / 2;
        const middle = (from + to) / 2 + shift * (to - from);
        change[`${name}.range`] = [middle - half, middle + half];
      }
      return Plotly.relayout(plot, change);
    };
    const acts = {
      in: () => zoom(0.6), out: () => zoom(1 / 0.6), left: () => zoom(1, -0.3),
      right: () => zoom(1, 0.3), reset: draw,
    };
    for (const button of figure.querySelectorAll("button[data-act]"))
      button.addEventListener("click", () => acts[button.dataset.act]());
    drawings.push(draw);
  }
  const drawAll = () => Promise.all(drawings.map((draw) => draw()));
  dark.addEventListener("change", drawAll);
  narrow.addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => { root.dataset.print = "yes"; drawAll(); });
  window.addEventListener("afterprint", () => { delete root.dataset.print; drawAll(); });
  drawAll().then(() => { root.dataset.ready = "yes"; });
})();
