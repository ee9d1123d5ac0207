// Search and sort in the tables that say what their rows are. Sums stay at the end. What the reader
// asked for is kept while the live page renews a table. A table that is cut can be scrolled by keys.
"use strict";
(() => {
  const asked = new Map(); // by what the rows are: the text, the column and the direction

  const nameOf = (row) => (row.cells[0].querySelector("[title]")?.title || "") + row.cells[0].textContent;

  // Figures by their value, everything else as text.
  function compare(one, other, column) {
    const [a, b] = [one, other].map((row) => row.cells[column]);
    if ("sort" in a.dataset && "sort" in b.dataset) return a.dataset.sort - b.dataset.sort;
    return a.textContent.localeCompare(b.textContent, undefined, { numeric: true });
  }

  function show(table, head, rows, sums) {
    const { text, column, down } = asked.get(table.dataset.searched);
    const wanted = text.trim().toLowerCase();
    const order = [...rows];
    if (column !== null) order.sort((a, b) => (down ? compare(b, a, column) : compare(a, b, column)));
    table.tBodies[0].replaceChildren(...order, ...sums);
    let found = 0;
    for (const row of rows) {
      row.hidden = !nameOf(row).toLowerCase().includes(wanted);
      found += !row.hidden;
    }
    for (const row of sums) row.hidden = wanted !== "";
    const all = rows.length.toLocaleString("en");
    const count = wanted ? `${found.toLocaleString("en")} of ${all}` : all;
    head.querySelector("[role=status]").textContent = `${count} ${table.dataset.searched}`;
    [...table.tHead.rows].at(-1).querySelectorAll("th").forEach((cell, place) => {
      if (place === column) cell.ariaSort = down ? "descending" : "ascending";
      else cell.removeAttribute("aria-sort");
    });
  }

  function prepare(table) {
    const head = table.closest(".scroll").previousElementSibling;
    const [rows, sums] = [[], []];
    for (const row of table.tBodies[0].rows) (row.classList.contains("sum") ? sums : rows).push(row);
    const what = table.dataset.searched;
    if (!asked.has(what)) asked.set(what, { text: "", column: null, down: true });
    const wish = asked.get(what);
    const input = head.querySelector("input");
    input.value = wish.text;
    input.addEventListener("input", () => {
      wish.text = input.value;
      show(table, head, rows, sums);
    });
    [...table.tHead.rows].at(-1).querySelectorAll("th").forEach((cell, place) => {
      const button = document.createElement("button");
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        // Names begin with the first of the alphabet, figures with the highest.
        wish.down = wish.column === place ? !wish.down : place > 0;
        wish.column = place;
        show(table, head, rows, sums);
      });
    });
    head.hidden = false;
    show(table, head, rows, sums);
  }

  const cut = new ResizeObserver((changes) => changes.forEach(({ target }) => {
    const wide = target.scrollWidth > target.clientWidth + 1;
    target.classList.toggle("wide", wide);
    if (wide || target.scrollHeight > target.clientHeight + 1) {
      const what = target.querySelector("table")?.dataset.searched;
      const title = target.closest(".block").querySelector("h2, h3, summary")?.textContent;
      Object.assign(target, { tabIndex: 0, role: "region", ariaLabel: what ? `Table of ${what}` : title || "Table" });
    } else ["tabindex", "role", "aria-label"].forEach((name) => target.removeAttribute(name));
  }));

  window.prepareTables = (within) => {
    within.querySelectorAll("table[data-searched]").forEach(prepare);
    within.querySelectorAll(".scroll, pre").forEach((one) => cut.observe(one));
  };
  window.prepareTables(document);
})();
