// What the theme leaves out for readers without a mouse: buttons beside code are no landmarks, and a
// table that is cut can be scrolled by keys.
"use strict";
new MutationObserver(() => {
  for (const one of document.querySelectorAll("nav.md-code__nav:not([role])")) one.role = "none";
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) one.tabIndex = 0;
}).observe(document.documentElement, { childList: true, subtree: true });
