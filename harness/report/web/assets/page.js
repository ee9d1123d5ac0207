// Draws the charts of a report, or follows a run on the live page. Texts come escaped from the
// server; colours of texts, grids and heat maps come from the style sheet.
"use strict";
(() => {
  const EVERY_MS = 2000;
  const PATIENCE_MS = 10000;
  const NARROW = matchMedia("(max-width: 640px)");
  const CONFIG = {
    displaylogo: false,
    responsive: false,
    // Named one by one: the library's own choice offers to send a chart to another host.
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    plotlyServerURL: "",
  };
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const figures = new Map(); // by id of the element: the text it came as
  let zoom = null; // the time that the reader looks at; null for all of it
  let turn = 0;
  const sizes = new ResizeObserver((changes) => {
    for (const { target } of changes) if (target.data) Plotly.Plots.resize(target);
  });

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function scale(name) {
    const colours = css(`--scale-${name}`).split(",");
    return colours.map((colour, place) => [place / (colours.length - 1), colour.trim()]);
  }

  // The figure in the reader's colours, and at the time they look at.
  function themed(figure) {
    const { data, layout } = figure;
    const ink = css("--ink");
    if (NARROW.matches) narrowed(data, layout);
    const grid = { gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--grid") };
    for (const trace of data) {
      if (trace.type === "heatmap") trace.colorscale = scale(trace.meta);
    }
    layout.font = { color: ink, family: css("--font"), size: 12 };
    layout.hoverlabel = {
      bgcolor: css("--card"), bordercolor: css("--line"), font: { color: ink }, align: "left",
    };
    layout.modebar = { color: css("--faint"), activecolor: ink, bgcolor: "rgba(0,0,0,0)" };
    Object.assign(layout.xaxis, grid);
    Object.assign(layout.yaxis, grid);
    // All charts show the same time, which is kept here, not in each of them.
    turn += 1;
    layout.xaxis.uirevision = turn;
    if (zoom) layout.xaxis.range = zoom;
    return { data, layout };
  }

  // The same chart on a phone: all of its width for the plot, and short texts.
  function narrowed(data, layout) {
    Object.assign(layout.margin, { l: 40, r: 10, autoexpand: true });
    for (const trace of data) {
      if (trace.type !== "heatmap") continue;
      trace.showscale = false;
      // Names of key ranges are too long to stand beside the map: a touch shows them.
      if (layout.yaxis.type === "category") Object.assign(layout.yaxis, { showticklabels: false, ticks: "" });
    }
    for (const shape of layout.shapes) if (shape.type === "rect") delete shape.label;
    layout.annotations = (layout.annotations || []).slice(0, 2);
    for (const text of layout.annotations) text.text = "moved";
    layout.xaxis.nticks = 4;
    layout.legend.font = { size: 10 };
  }

  function draw(id) {
    const element = find(id);
    const isNew = !element.classList.contains("js-plotly-plot");
    const figure = JSON.parse(figures.get(id));
    const first = [...figure.layout.xaxis.range];
    const [title, note] = element.parentNode.querySelectorAll("h3, .note");
    title.textContent = figure.title;
    note.textContent = figure.note;
    note.hidden = !figure.note;
    element.role = "group";
    element.ariaLabel = `Chart: ${[figure.title, figure.note].filter(Boolean).join("; ")}`;
    const { data, layout } = themed(figure);
    element.style.height = `${layout.height}px`;
    delete layout.height;
    Plotly.react(element, data, layout, { ...CONFIG, displayModeBar: NARROW.matches ? false : "hover" });
    if (isNew) {
      element.first = first;
      element.on("plotly_relayout", (change) => follow(element, change));
      sizes.observe(element);
    }
  }

  const drawAll = () => figures.forEach((_, id) => draw(id));

  const utc = (end) => (typeof end === "number" ? end : Date.parse(`${end.replace(" ", "T")}Z`));

  // What the reader zoomed to in one chart is shown in all of them. A chart that is reset goes back
  // to the time that it was first drawn with: the whole time then, less than the whole time now.
  function follow(element, change) {
    const range = change["xaxis.range"] || [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (range[0] === undefined && !change["xaxis.autorange"]) return;
    const first = change["xaxis.autorange"] ? range : element.first;
    zoom = range.every((end, place) => end === first[place] || utc(end) === first[place]) ? null : range;
    drawAll();
  }

  function drop(id) {
    figures.delete(id);
    const element = find(id);
    element.closest(".chart").hidden = true;
    if (element.classList.contains("js-plotly-plot")) Plotly.purge(element);
    sizes.unobserve(element);
    element.classList.remove("js-plotly-plot");
    element.replaceChildren();
  }

  function showCharts(charts) {
    for (const id of [...figures.keys()]) if (!(id in charts)) drop(id);
    const changed = [];
    for (const [id, figure] of Object.entries(charts)) {
      const text = JSON.stringify(figure);
      if (find(id) && figures.get(id) !== text) {
        figures.set(id, text);
        changed.push(id);
        // All of them have their place before the first is drawn, which takes its width from it.
        find(id).closest(".chart").hidden = false;
        find(id).closest("section").hidden = false;
      }
    }
    changed.forEach(draw);
  }

  function showParts(parts) {
    for (const element of document.querySelectorAll("[data-part]")) {
      const html = parts[element.id] || "";
      element.closest(".block").hidden = !html;
      if (element.shown !== html) {
        const writing = element.contains(document.activeElement) && document.activeElement.tagName === "INPUT";
        element.innerHTML = html;
        element.shown = html;
        window.prepareTables(element);
        if (writing) element.querySelector("input")?.focus();
      }
    }
    for (const section of document.querySelectorAll("main section")) {
      section.hidden = !section.querySelector(".block:not([hidden])");
    }
  }

  let runId = null;

  function show(answer) {
    if (answer.run_id !== runId) {
      runId = answer.run_id;
      zoom = null;
      showCharts({});
      showParts({});
    }
    document.body.dataset.state = answer.state;
    document.title = answer.run_id ? `${answer.state}: ${answer.run_id}` : "Table stress";
    find("run").textContent = answer.run_id || "";
    find("state").textContent = answer.sentence;
    find("none").hidden = answer.state !== "none";
    find("waiting").hidden = answer.state !== "preparing" || Object.keys(answer.parts || {}).length > 0;
    find("waiting").firstElementChild.textContent = answer.sentence;
    showCharts(answer.charts || {});
    showParts(answer.parts || {});
    find("shown-nav").hidden = !figures.size;
  }

  async function ask() {
    const answer = await fetch(document.body.dataset.source, {
      cache: "no-store",
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (answer.redirected || answer.status === 401) return "The login has expired. Reload this page.";
    if (!answer.ok) return `The harness answered ${answer.status}. Retrying.`;
    show(await answer.json());
    return "";
  }

  let timer = null;
  let asking = false;

  async function poll() {
    if (asking) return;
    clearTimeout(timer);
    if (!document.hidden) {
      asking = true;
      let lost;
      try {
        lost = await ask();
      } catch (error) {
        if (!(error instanceof TypeError || error instanceof DOMException)) console.error(error);
        lost = "Connection lost. Retrying. The page shows the last known state.";
      }
      asking = false;
      find("lost").textContent = lost;
      find("lost").hidden = !lost;
    }
    timer = setTimeout(poll, EVERY_MS);
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  NARROW.addEventListener("change", drawAll);
  addEventListener("beforeprint", () => {
    root.dataset.scheme = "light";
    drawAll();
  });
  addEventListener("afterprint", () => {
    delete root.dataset.scheme;
    drawAll();
  });

  const kept = find("charts");
  if (kept) showCharts(JSON.parse(kept.textContent));
  else {
    document.addEventListener("visibilitychange", poll);
    poll();
  }
})();
