// Closes the menu with Escape, and with a click or the focus outside it. Without scripts, its own
// button closes it.
const menu = document.querySelector(".menu");
if (menu) {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  for (const kind of ["click", "focusin"]) {
    document.addEventListener(kind, (event) => (menu.open &&= menu.contains(event.target)));
  }
}
