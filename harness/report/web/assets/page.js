// Shows the charts of a report, or follows a run on the live page. Texts come escaped from the server.
"use strict";
(() => {
  const EVERY_MS = 2000;
  const PATIENCE_MS = 10000;
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);

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
      window.charts.look(null);
      window.charts.show({});
      showParts({});
    }
    document.body.dataset.state = answer.state;
    document.title = answer.run_id ? `${answer.state}: ${answer.run_id}` : "Table stress";
    find("run").textContent = answer.run_id || "";
    find("state").textContent = answer.sentence;
    find("none").hidden = answer.state !== "none";
    find("waiting").hidden = answer.state !== "preparing" || Object.keys(answer.parts || {}).length > 0;
    find("waiting").firstElementChild.textContent = answer.sentence;
    window.charts.show(answer.charts || {});
    showParts(answer.parts || {});
    find("shown-nav").hidden = !Object.keys(answer.charts || {}).length;
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

  // Paper is light, and nobody can open what is collapsed on it.
  let opened = [];
  addEventListener("beforeprint", () => {
    root.dataset.scheme = "light";
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
    window.charts.redraw();
  });
  addEventListener("afterprint", () => {
    delete root.dataset.scheme;
    for (const one of opened) one.open = false;
    window.charts.redraw();
  });

  const kept = find("charts");
  if (kept) window.charts.show(JSON.parse(kept.textContent));
  else {
    document.addEventListener("visibilitychange", poll);
    poll();
  }
})();
