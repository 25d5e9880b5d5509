// SPDX-License-Identifier: Apache-2.0
// Before anything is drawn: the theme that was chosen on this machine, if any.
try {
  const theme = localStorage.getItem("fairlead-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch (e) { /* no storage: the system's theme */ }
