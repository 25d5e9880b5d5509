// SPDX-License-Identifier: Apache-2.0
// Keys and live updates. Every page is whole without it.
(() => {
  "use strict";
  const root = document.documentElement;

  // The theme: the system's, until somebody chooses another one.
  const theme = () => document.getElementById("theme");
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const showTheme = () => {
    const button = theme();
    if (button) button.hidden = false;
  };
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#theme")) return;
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("fairlead-theme", root.dataset.theme); } catch (e) { /* for this page only */ }
  });
  showTheme();

  // Rows are walked with j and k, and opened with o.
  const rows = () => Array.from(document.querySelectorAll("main tr > th a[href], main [data-row] a[href]")).filter((a) => a.closest("tbody, [data-row]"));
  const walk = (by) => {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement);
    const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };
  const follow = (id) => document.getElementById(id)?.click();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, textarea, select");
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const dialog = document.getElementById("keys");
    switch (event.key) {
      case "j": walk(1); break;
      case "k": walk(-1); break;
      case "o": if (rows().includes(document.activeElement)) document.activeElement.click(); break;
      case "[": follow("prev"); break;
      case "]": follow("next"); break;
      case "/": document.querySelector("input[name=q]")?.focus(); break;
      case "?": dialog.open ? dialog.close() : dialog.showModal(); break;
      default: return;
    }
    event.preventDefault();
  });
})();
