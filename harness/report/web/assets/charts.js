// Draws the charts of a page, as frame.py describes them: lines and texts as SVG, which the style
// sheet colours, heat maps on a canvas behind. Whatever names hold, they are written as text.
"use strict";
window.charts = (() => {
  const NARROW = matchMedia("(max-width: 640px)");
  const LINE_PX = 14;
  const BURST = 4; // times as high as the rest, in less than RARE of the points
  const RARE = 0.1;
  const SIGNS = {
    good: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0", bad: "M-4 -4L4 4M-4 4L4 -4", warn: "M0 -6L6 0L0 6L-6 0Z",
    none: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0",
  };
  const STYLES = [
    "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font", "paint-order",
  ];
  const pen = document.createElement("canvas").getContext("2d");
  const shown = new Map(); // the charts of the page by the id of their element
  const drawn = new Map(); // likewise what marks a time in them
  const hidden = new Set(); // lines that the reader does not want, by chart and name
  const layers = new Map(); // the chosen layer of a heat map by the id of its element
  let held = false; // whether the reader is choosing a time
  let zoom = null; // the time that the reader looks at in all charts; null for all of it

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const wide = (text) => pen.measureText(text).width;
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

  function add(parent, name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function say(parent, name, className, text = "") {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    parent.append(made);
    return made;
  }

  const figure = (value) =>
    value.toLocaleString("en", value >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 });

  // The middle is cut out: keys that begin alike often end differently.
  function cut(text, room) {
    if (wide(text) <= room) return text;
    const signs = [...text];
    let kept = signs.length;
    const short = () => `${signs.slice(0, Math.floor(kept / 2)).join("")}…${signs.slice(-Math.ceil(kept / 2)).join("")}`;
    do kept -= 1; while (kept > 2 && wide(short()) > room);
    return short();
  }

  function clock(chart, x, step = 0) {
    if (chart.names.length) return chart.names[x] || "";
    if (chart.began === null) return `${figure(x)} s`;
    const text = new Date((chart.began + x) * 1000).toISOString();
    if (step >= 86400) return text.slice(5, 10);
    return text.slice(11, step >= 60 ? 16 : 19);
  }

  // Round steps in time, at least `most` of them apart.
  function times(chart, [from, to], most) {
    const steps = chart.names.length
      ? [1, 2, 5, 10, 20, 50, 100, 1000]
      : [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
    const step = steps.find((one) => (to - from) / one <= most) || 86400 * Math.ceil((to - from) / 86400 / most);
    const began = chart.began || 0;
    const found = [];
    for (let at = Math.ceil((began + from) / step) * step; at <= began + to; at += step) found.push(at - began);
    return [found, step];
  }

  // Each line with its points in the shown time, and the sums that a stack is drawn with.
  function courses(id, chart, [from, to]) {
    const sums = new Map();
    return chart.lines.filter((line) => !hidden.has(`${id} ${line.name}`)).map((line) => {
      const low = line.ys.map((_, place) => (line.look === "stack" ? sums.get(line.xs[place]) || 0 : 0));
      const ys = line.ys.map((y, place) => (y === null ? null : y + low[place]));
      if (line.look === "stack") line.xs.forEach((x, place) => sums.set(x, ys[place] ?? low[place]));
      const seen = ys.filter((y, place) => y !== null && line.xs[place] >= from && line.xs[place] <= to);
      return { line, low, ys, seen };
    });
  }

  // The left axis: its ends and ticks, the highest value, and what it ends below.
  function leftAxis(chart, lines, height) {
    const { heat } = chart;
    const values = lines.filter(({ line }) => !line.share).flatMap(({ seen }) => seen).sort((a, b) => a - b);
    const highest = values.at(-1) || 0;
    if (chart.log) {
      const positive = values.filter((value) => value > 0);
      const low = heat ? heat.edges[0] : 10 ** Math.floor(Math.log10(positive[0] || 1));
      const high = heat ? heat.edges.at(-1) : 10 ** Math.ceil(Math.log10(Math.max(highest, low * 1.01)));
      const ticks = [];
      for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * 1.001; power += 1) ticks.push(10 ** power);
      return { low, high, ticks, highest: 0 };
    }
    let high = highest;
    const usual = values[Math.floor(values.length * (1 - RARE)) - 1] || 0;
    if (chart.bursts && usual > 0 && usual * BURST < highest) high = usual * 1.5;
    for (const level of chart.levels) if (high >= level.value * level.reach) high = Math.max(high, level.value);
    high = chart.top || high * 1.12 || 1;
    const rough = high / Math.max(2, height / 36);
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].find((one) => one * unit >= rough * 0.999) * unit;
    const ticks = [];
    for (let place = 0; place * step <= high; place += 1) ticks.push(place * step);
    return { low: 0, high, ticks, highest };
  }

  // The room left and right of all plots, so that one time stands below the other.
  function rooms() {
    pen.font = `12px ${css("--font")}`;
    let [left, right] = [0, 10];
    const most = NARROW.matches ? 92 : 230;
    for (const [id, chart] of shown) {
      const names = chart.heat?.names || [];
      const width = NARROW.matches && names.length ? Math.min(most, document.getElementById(id).clientWidth / 4) : most;
      for (const name of names) left = Math.max(left, Math.min(width, wide(name)));
      if (!names.length) {
        const { ticks } = leftAxis(chart, courses(id, chart, zoom || chart.span), chart.height);
        for (const tick of ticks) left = Math.max(left, wide(figure(tick)));
      }
      if (chart.lines.some((line) => line.share)) right = 44;
    }
    return { left: Math.ceil(left) + 12, right };
  }

  function colours(name) {
    return css(`--scale-${name}`).split(",").map((one) => one.trim().slice(1).match(/../g).map((part) => parseInt(part, 16)));
  }

  function paint(canvas, chart, x, y, plot) {
    const { heat } = chart;
    const scale = colours(heat.scale);
    const [rows, columns] = [heat.cells.length, heat.cells[0].length];
    const least = heat.cells.flat().reduce((low, value) => (value && value < low ? value : low), heat.most);
    const share = (value) =>
      heat.log ? (heat.most > least ? Math.log(value / least) / Math.log(heat.most / least) : 1) : value / heat.most;
    const picture = new ImageData(columns, rows);
    heat.cells.forEach((cells, row) => cells.forEach((value, column) => {
      if (!value) return;
      const at = clamp(share(value), 0, 1) * (scale.length - 1);
      const [one, other] = [scale[Math.floor(at)], scale[Math.ceil(at)]];
      const line = heat.edges.length ? rows - 1 - row : row;
      const pixel = one.map((part, place) => part + (other[place] - part) * (at % 1));
      picture.data.set([...pixel, 255], 4 * (line * columns + column));
    }));
    const cells = new OffscreenCanvas(columns, rows);
    cells.getContext("2d").putImageData(picture, 0, 0);
    const sharp = devicePixelRatio || 1;
    Object.assign(canvas, { width: plot.width * sharp, height: plot.height * sharp });
    Object.assign(canvas.style, { left: `${plot.left}px`, top: `${plot.top}px`, width: `${plot.width}px`, height: `${plot.height}px` });
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    const [from, to] = [x(heat.start_s), x(heat.start_s + columns * heat.width_s)];
    context.drawImage(cells, (from - plot.left) * sharp, 0, (to - from) * sharp, plot.height * sharp);
    return least;
  }

  // A button of a legend that is on or off.
  function choice(list, className, text, on, act) {
    const button = say(list, "button", className, text);
    Object.assign(button, { type: "button", ariaPressed: on, onclick: () => (act(), redraw()) });
  }

  function legend(id, chart, least) {
    const list = document.createElement("div");
    list.className = "legend";
    const entries = chart.lines.filter((line) => line.legend && !line.signs.length);
    const has = (tone) => chart.bands.some((band) => band.tone === tone);
    for (const { name } of chart.whole?.layers.length ? [{ name: "all" }, ...chart.whole.layers] : []) {
      choice(list, "layer", name, name === (layers.get(id) || "all"), () => layers.set(id, name));
    }
    for (const line of entries.length > 1 || chart.heat ? entries : []) {
      const key = `${id} ${line.name}`;
      const text = line.name + (line.share ? " (right)" : "");
      choice(list, `key ${line.look} tone-${line.tone}`, text, !hidden.has(key), () => hidden.delete(key) || hidden.add(key));
    }
    if (has("moved") || chart.marks.length) say(list, "span", "key swatch tone-moved", "partition moved");
    if (has("stopped")) say(list, "span", "key swatch tone-stopped", "nothing succeeded");
    const { heat } = chart;
    if (!heat) return list;
    const more = heat.cells.some((row) => row.some((value) => value > heat.most)) ? " or more" : "";
    const ramp = say(list, "span", "ramp", heat.log ? figure(least) : "0");
    say(ramp, "i", "").style.background = `linear-gradient(90deg, var(--scale-${heat.scale}))`;
    ramp.append(`${figure(heat.most)} ${heat.unit}${more}`);
    return list;
  }

  function draw(id, room) {
    const element = document.getElementById(id);
    const chart = shown.get(id);
    const [from, to] = zoom || chart.span;
    const { heat } = chart;
    const names = heat?.names || [];
    const focused = [...element.querySelectorAll("button")].indexOf(document.activeElement);
    element.replaceChildren();
    const frame = say(element, "div", "plot");
    const said = [chart.title, layers.get(id), chart.pattern].filter(Boolean).join("; ");
    Object.assign(frame, { role: "img", ariaLabel: `Chart: ${said}` });
    const width = element.clientWidth;
    const plot = { left: room.left, top: 6, width: Math.max(20, width - room.left - room.right), height: chart.height - 32 };
    const bottom = plot.top + plot.height;
    const lines = courses(id, chart, [from, to]);
    const axis = leftAxis(chart, lines, plot.height);
    const x = (time) => plot.left + ((time - from) / (to - from)) * plot.width;
    const y = (value) => {
      const [low, high, at] = chart.log ? [axis.low, axis.high, value].map(Math.log) : [axis.low, axis.high, value];
      return clamp(bottom - ((at - low) / (high - low)) * plot.height, -9999, 9999);
    };
    const least = heat ? paint(say(frame, "canvas", ""), chart, x, y, plot) : 0;
    const svg = add(frame, "svg", { width, height: chart.height, "aria-hidden": true });
    const clip = add(add(svg, "clipPath", { id: `${id}-clip` }), "rect", { x: plot.left, y: plot.top, width: plot.width, height: plot.height });
    const inside = { "clip-path": `url(#${clip.parentNode.id})` };

    for (const band of chart.bands) {
      const high = band.tone === "stopped" ? plot.height / 20 : plot.height;
      const end = Math.max(x(band.end_s), x(band.start_s) + 1);
      add(svg, "rect", { class: `band tone-${band.tone}`, x: x(band.start_s), y: bottom - high, width: end - x(band.start_s), height: high, ...inside });
    }
    const rowPx = plot.height / (heat?.cells.length || 1);
    if (names.length) {
      const every = Math.ceil(12 / rowPx);
      names.forEach((name, row) => {
        const at = plot.top + (row + 0.5) * rowPx;
        if (row % every === 0) add(svg, "text", { class: "row", x: plot.left - 6, y: at + 4, "text-anchor": "end" }, cut(name, room.left - 12));
        if (row && rowPx > 4) add(svg, "path", { class: "gap", d: `M${plot.left} ${at - rowPx / 2}h${plot.width}` });
      });
    } else {
      for (const tick of axis.ticks) {
        if (!heat) add(svg, "path", { class: "grid", d: `M${plot.left} ${y(tick)}h${plot.width}` });
        add(svg, "text", { x: plot.left - 6, y: y(tick) + 4, "text-anchor": "end" }, figure(tick));
      }
    }
    const [ticks, step] = times(chart, [from, to], plot.width / (chart.names.length ? 110 : 80));
    for (const tick of ticks) {
      const text = clock(chart, tick, step);
      const at = clamp(x(tick), wide(text) / 2, width - wide(text) / 2);
      add(svg, "path", { class: "grid", d: `M${x(tick)} ${bottom}v4` });
      add(svg, "text", { class: "time", x: at, y: bottom + 18, "text-anchor": "middle" }, text);
    }

    const right = (value) => bottom - (value / 100) * plot.height * 0.98;
    if (chart.lines.some((line) => line.share)) {
      for (const share of [0, 25, 50, 75, 100]) {
        add(svg, "text", { class: "share", x: plot.left + plot.width + 6, y: right(share) + 4 }, `${share}%`);
      }
    }
    const signs = add(svg, "g", {});
    for (const { line, low, ys } of lines) {
      const height = line.share ? right : y;
      let [path, area, start] = ["", "", null];
      const close = (place) => {
        if (start === null) return;
        let back = "";
        for (let one = place; one >= start; one -= 1) back += `L${x(line.xs[one]).toFixed(1)} ${y(low[one]).toFixed(1)}`;
        area += `${path.slice(path.lastIndexOf("M"))}${back}Z`;
        start = null;
      };
      line.xs.forEach((time, place) => {
        if (ys[place] === null) return close(place - 1);
        path += `${start === null ? "M" : "L"}${x(time).toFixed(1)} ${height(ys[place]).toFixed(1)}`;
        start ??= place;
      });
      close(line.xs.length - 1);
      if (/area|stack/.test(line.look)) add(svg, "path", { class: `fill tone-${line.tone}`, d: area, ...inside });
      add(svg, "path", { class: `line ${line.look} tone-${line.tone}`, d: path, ...inside });
      line.signs.forEach((sign, place) => {
        if (ys[place] === null) return;
        const at = `translate(${x(line.xs[place])} ${y(ys[place])})`;
        add(signs, "path", { class: `sign tone-${sign}`, d: SIGNS[sign], transform: at });
      });
    }
    svg.append(signs);
    for (const mark of chart.marks) {
      const at = plot.top + (mark.row + 0.5) * rowPx;
      add(svg, "path", { class: "mark", d: `M${x(mark.start_s)} ${at}H${x(mark.end_s)}m0 -5v10M${x(mark.start_s)} ${at - 5}v10`, ...inside });
    }

    // Texts at the upper edge: each in the first line that has room for it.
    const taken = [];
    for (const level of chart.levels.filter((one) => one.value <= axis.high)) {
      const at = y(level.value);
      const base = at - 4 < plot.top + 10 ? at + 14 : at - 4;
      const text = cut(level.text, plot.width - 8);
      add(svg, "path", { class: `level tone-${level.tone}`, d: `M${plot.left} ${at}h${plot.width}` });
      add(svg, "text", { class: "note-text", x: plot.left + 4, y: base }, text);
      const line = (base - plot.top - 12) / LINE_PX;
      for (const one of [Math.floor(line), Math.ceil(line)]) taken.push([one, plot.left, plot.left + wide(text) + 12]);
    }
    const write = (text, at) => {
      const begin = clamp(at, plot.left + 4, plot.left + plot.width - wide(text) - 4);
      const free = [0, 1, 2, 3].find((one) => !taken.some(([line, low, high]) => line === one && begin < high && low < begin + wide(text)));
      if (free === undefined || wide(text) > plot.width) return;
      taken.push([free, begin, begin + wide(text) + 12]);
      add(svg, "text", { class: "note-text", x: begin, y: plot.top + 12 + free * LINE_PX }, text);
    };
    for (const level of chart.levels) if (level.value > axis.high) write(`↑ ${level.text}`, plot.left);
    if (axis.highest > axis.high) {
      const { line, ys } = lines.find(({ line, seen }) => !line.share && seen.includes(axis.highest));
      const time = line.xs[ys.indexOf(axis.highest)];
      write(`↑ ${figure(axis.highest)} ${line.unit} at ${clock(chart, Math.floor(time))}`, x(time) + 6);
    }
    if (id === "chart-main") {
      for (const band of chart.bands) {
        const text = NARROW.matches && band.tone === "moved" ? "moved" : band.text;
        if (band.tone === "moved") write(text, x(band.start_s));
        if (band.tone === "measured") write(text, x(band.end_s) - wide(text));
      }
    }

    const cross = add(svg, "path", { class: "cross" });
    const chosen = add(svg, "rect", { class: "chosen", y: plot.top, height: plot.height, width: 0 });
    const tip = say(frame, "div", "tip");
    tip.hidden = true;
    element.prepend(legend(id, chart, least));
    element.querySelectorAll("button")[focused]?.focus();
    const time = (at) => clamp(from + ((at - plot.left) / plot.width) * (to - from), from, to);
    drawn.set(id, {
      cross: (at) => cross.setAttribute("d", at === null ? "" : `M${x(at)} ${plot.top}v${plot.height}`),
    });
    listen(svg, chart, { plot, x, time, rowPx, lines, chosen, tip });
  }

  // What stands beside the pointer: the time, and each line or the cell there.
  function told(chart, at, py, { plot, rowPx, lines }) {
    const { heat } = chart;
    const texts = [];
    let seen = at;
    for (const { line } of lines) {
      if (!line.xs.length) continue;
      const place = line.xs.reduce((best, one, index) => (Math.abs(one - at) < Math.abs(line.xs[best] - at) ? index : best), 0);
      if (chart.names.length) seen = line.xs[place];
      const value = line.ys[place];
      if (value !== null) texts.push([`${figure(value)} ${line.unit}`, line.name, line.tone, line.texts[place]]);
    }
    if (heat) {
      const column = Math.floor((at - heat.start_s) / heat.width_s);
      const place = clamp(Math.floor((py - plot.top) / rowPx), 0, heat.cells.length - 1);
      const row = heat.edges.length ? heat.cells.length - 1 - place : place;
      const value = heat.cells[row][column];
      const name = heat.names[row] ?? `${figure(heat.edges[row])} to ${figure(heat.edges[row + 1])} ms`;
      texts.unshift([value ? `${figure(value)} ${heat.unit}` : `0 ${heat.unit}`, name]);
      for (const mark of chart.marks) if (mark.row === row && mark.start_s <= at && at <= mark.end_s) texts.push(["", mark.text, "moved"]);
    }
    for (const band of chart.bands) if (band.tone !== "measured" && band.start_s <= at && at <= band.end_s) texts.push(["", band.text, band.tone]);
    return [clock(chart, chart.names.length ? seen : Math.floor(at)), texts];
  }

  function listen(svg, chart, how) {
    const { plot, x, time, chosen, tip } = how;
    let pressed = null;
    const where = (event) => [event.clientX - svg.getBoundingClientRect().left, event.clientY - svg.getBoundingClientRect().top];
    svg.addEventListener("pointerdown", (event) => {
      if (event.button || chart.names.length) return;
      [pressed] = where(event);
      held = true;
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      const [px, py] = where(event);
      const at = time(px);
      drawn.forEach((one) => one.cross(at));
      if (pressed !== null && !(event.shiftKey && zoom)) {
        const [low, high] = [x(time(Math.min(pressed, px))), x(time(Math.max(pressed, px)))];
        chosen.setAttribute("x", low);
        chosen.setAttribute("width", high - low);
      }
      const [head, texts] = told(chart, at, py, how);
      tip.replaceChildren();
      say(tip, "b", "", head);
      for (const [value, name, tone, more] of texts) {
        say(tip, "div", tone ? `key tone-${tone}` : "", [value, name, more].filter(Boolean).join(" · "));
      }
      tip.hidden = false;
      const left = px + 14 + tip.offsetWidth > svg.clientWidth ? px - 14 - tip.offsetWidth : px + 14;
      Object.assign(tip.style, { left: `${Math.max(0, left)}px`, top: `${clamp(py - 10, 0, Math.max(0, plot.height - tip.offsetHeight))}px` });
    });
    svg.addEventListener("pointerup", (event) => {
      const [px] = where(event);
      const begin = pressed;
      pressed = null;
      held = false;
      if (begin === null || Math.abs(px - begin) <= 6) return;
      if (!event.shiftKey || !zoom) return look([time(Math.min(begin, px)), time(Math.max(begin, px))]);
      const by = clamp(((begin - px) / plot.width) * (zoom[1] - zoom[0]), chart.span[0] - zoom[0], chart.span[1] - zoom[1]);
      look(zoom.map((one) => one + by));
    });
    svg.addEventListener("pointerleave", () => {
      if (pressed !== null) return;
      tip.hidden = true;
      drawn.forEach((one) => one.cross(null));
    });
    svg.addEventListener("dblclick", () => look(null));
  }

  // What the reader looks at in one chart is shown in all of them.
  function look(time) {
    zoom = time && time[1] > time[0] ? time : null;
    redraw();
  }

  function redraw() {
    if (held) return;
    for (const [id, chart] of shown) {
      chart.whole ??= chart.heat;
      chart.heat = chart.whole && { ...chart.whole, ...chart.whole.layers.find(({ name }) => name === layers.get(id)) };
    }
    const room = rooms();
    for (const id of shown.keys()) draw(id, room);
    for (const button of document.querySelectorAll(".whole")) button.hidden = !zoom;
  }

  // Saves what is seen of a chart, with its title and legend, as a picture of twice the size.
  async function picture(id) {
    const element = document.getElementById(id);
    const [svg, map] = [element.querySelector("svg"), element.querySelector("canvas")];
    const copy = svg.cloneNode(true);
    const all = [...svg.querySelectorAll("*")];
    copy.querySelectorAll("*").forEach((one, place) => {
      const style = getComputedStyle(all[place]);
      for (const name of STYLES) one.style.setProperty(name, style.getPropertyValue(name));
    });
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
    await image.decode();
    const [width, height, head] = [svg.clientWidth, svg.clientHeight, 48];
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * (height + head) });
    const context = canvas.getContext("2d");
    const write = (text, x, y, colour) => (Object.assign(context, { fillStyle: colour }), context.fillText(text, x, y));
    context.scale(2, 2);
    Object.assign(context, { fillStyle: css("--card"), font: `600 14px ${css("--font")}` });
    context.fillRect(0, 0, width, height + head);
    write(shown.get(id).title, 8, 18, css("--ink"));
    context.font = `12px ${css("--font")}`;
    let at = 8;
    for (const one of element.querySelectorAll(".legend > :not([aria-pressed=false])")) {
      const tone = getComputedStyle(one).getPropertyValue("--tone") || css("--scale-heat").split(",")[2];
      const text = [...one.childNodes].map((node) => node.textContent.trim()).filter(Boolean).join(" to ");
      write("■", at, 38, tone);
      write(text, at + 14, 38, css("--ink"));
      at += context.measureText(text).width + 32;
    }
    if (map) context.drawImage(map, map.offsetLeft, map.offsetTop + head, map.clientWidth, map.clientHeight);
    context.drawImage(image, 0, head, width, height);
    Object.assign(document.createElement("a"), { download: `${id}.png`, href: canvas.toDataURL() }).click();
  }

  let due = false;
  const sizes = new ResizeObserver(() => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      if ([...shown.keys()].some((id) => document.getElementById(id).clientWidth !== document.querySelector(`#${id} svg`)?.clientWidth)) redraw();
    });
  });

  function show(charts) {
    for (const id of [...shown.keys()].filter((one) => !(one in charts))) {
      const element = document.getElementById(id);
      shown.delete(id);
      drawn.delete(id);
      sizes.unobserve(element);
      element.closest(".chart").hidden = true;
    }
    for (const [id, chart] of Object.entries(charts)) {
      const element = document.getElementById(id);
      if (!element) continue;
      if (!shown.has(id)) sizes.observe(element);
      shown.set(id, chart);
      const block = element.closest(".chart");
      block.hidden = false;
      block.closest("section").hidden = false;
      block.querySelector(".title").textContent = chart.title;
      const pattern = block.querySelector(".pattern");
      pattern.textContent = chart.pattern;
      pattern.hidden = !chart.pattern;
      const [save, whole] = ["save", "whole"].map((name) => block.querySelector(`.${name}`));
      save.onclick = () => picture(id);
      save.ariaLabel = `Save as PNG: ${chart.title}`;
      whole.onclick = () => look(null);
      whole.title = "Shift and drag moves the time";
    }
    redraw();
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  return { show, redraw, look };
})();
