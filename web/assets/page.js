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
  let timer, busy, again;
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

  // One stream serves all tabs: a browser has six connections to a server, and streams that
  // take them keep every page from loading. Of the tabs that are looked at, the one that
  // has the lock listens, and tells the others. Where there are no locks, since the page
  // came without TLS, a tab listens for itself.
  let source, retry, last, release, waiting;
  const address = document.body.dataset.events;
  const tabs = "BroadcastChannel" in window ? new BroadcastChannel("fairlead " + address) : null;
  const hear = (news) => {
    if (!main() || "past" in main().dataset) return;
    say(news.version ? "live" : "lost", news.version ? "live" : "not connected");
    if (news.version && news.version !== main().dataset.version) soon();
  };
  const tell = (news) => {
    last = news;
    tabs?.postMessage(news);
    hear(news);
  };
  const listen = () => {
    source = new EventSource(address + "?since=" + encodeURIComponent(main().dataset.version || ""));
    for (const kind of ["ready", "changed", "resync"]) {
      source.addEventListener(kind, (event) => tell({ version: JSON.parse(event.data).version }));
    }
    source.addEventListener("error", () => {
      tell({});
      if (source?.readyState === EventSource.CLOSED) retry = setTimeout(listen, 10000 + Math.random() * 20000);
    });
  };
  const join = () => {
    if (waiting || document.hidden || !window.EventSource || !main() || "past" in main().dataset) return;
    waiting = new AbortController();
    tabs?.postMessage({ ask: true });
    if (!tabs || !navigator.locks) { listen(); return; }
    navigator.locks.request("fairlead " + address, { signal: waiting.signal }, () => waiting && new Promise((done) => {
      release = done;
      listen();
    })).catch(() => { /* it left before it was its turn */ });
  };
  const leave = () => {
    clearTimeout(retry);
    source?.close();
    waiting?.abort();
    release?.();
    source = release = waiting = last = undefined;
  };
  if (tabs) tabs.onmessage = (event) => {
    if (!event.data.ask) hear(event.data);
    else if (source && last) tabs.postMessage(last);
  };
  document.addEventListener("visibilitychange", () => document.hidden ? leave() : join());
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => { if (event.persisted) join(); });
  join();
})();
