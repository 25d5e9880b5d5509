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

  // Live: when the server says that something has changed, this page is asked for again, and
  // what differs is replaced in place. Open folds, the focus and the scroll stay.
  const main = () => document.getElementById("main");
  const say = (state, text) => {
    const live = document.getElementById("live");
    if (!live) return;
    live.dataset.state = state;
    live.textContent = text;
  };
  let source, timer, busy, again;
  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true;
    const before = new Map(Array.from(document.querySelectorAll("main tbody[id] tr[id]"), (row) => [row.id, row.innerHTML]));
    try {
      await htmx.ajax("GET", location.pathname + location.search, { target: "#main", select: "#main", swap: "outerMorph" });
    } catch (e) { /* the stream tells whether the server is there */ }
    for (const row of document.querySelectorAll("main tbody[id] tr[id]")) {
      row.classList.toggle("changed", before.has(row.id) && before.get(row.id) !== row.innerHTML);
    }
    busy = false;
    if (again) { again = false; soon(); }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, 50 + Math.random() * 400);
  };
  const listen = () => {
    if (!window.EventSource || !main() || "past" in main().dataset || source) return;
    source = new EventSource(document.body.dataset.events + "?since=" + encodeURIComponent(main().dataset.version || ""));
    source.addEventListener("ready", (event) => {
      say("live", "live");
      if (JSON.parse(event.data).version !== main().dataset.version) soon();
    });
    source.addEventListener("changed", soon);
    source.addEventListener("resync", soon);
    source.addEventListener("error", () => {
      say("lost", "not connected");
      if (source.readyState !== EventSource.CLOSED) return;
      source = null;
      setTimeout(listen, 10000 + Math.random() * 20000);
    });
  };
  listen();
})();
