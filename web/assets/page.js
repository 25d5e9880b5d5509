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
  // A browser opens six connections to a host, and a stream takes one for good: of all tabs
  // one has the stream, and tells the others.
  const address = document.body.dataset.events;
  const channel = window.BroadcastChannel ? new BroadcastChannel("fairlead " + address) : null;
  let last;
  const hear = (message) => {
    last = message;
    if (message.kind === "lost") return say("lost", "not connected");
    say("live", "live");
    if (message.version !== main().dataset.version) soon();
  };
  const tell = (message) => {
    hear(message);
    channel?.postMessage(message);
  };
  const connect = () => {
    source = new EventSource(address + "?since=" + encodeURIComponent(main().dataset.version || ""));
    for (const kind of ["ready", "changed", "resync"]) {
      source.addEventListener(kind, (event) => tell({ kind, version: JSON.parse(event.data).version }));
    }
    source.addEventListener("error", () => {
      tell({ kind: "lost" });
      if (source?.readyState !== EventSource.CLOSED) return;
      source = null;
      setTimeout(() => { if (leads && !source) connect(); }, 10000 + Math.random() * 20000);
    });
  };
  let leads = false, resign;
  const listen = () => {
    if (!window.EventSource || !main() || "past" in main().dataset) return;
    const lead = () => {
      leads = true;
      connect();
      return new Promise((done) => { resign = done; });
    };
    if (!navigator.locks || !channel) return void lead();
    channel.postMessage({ kind: "who" });
    navigator.locks.request("fairlead " + address, lead);
  };
  if (channel) {
    channel.onmessage = (event) => {
      if (!main() || "past" in main().dataset) return;
      if (event.data.kind !== "who") return hear(event.data);
      if (leads && last) channel.postMessage(last);
    };
  }
  addEventListener("pagehide", () => {
    source?.close();
    source = null;
    leads = false;
    resign?.();
  });
  addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
  listen();
})();
