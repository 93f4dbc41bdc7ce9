// Chooses all links of a page of the list at once. Without scripts each has its own box.
const all = document.getElementById("all");
if (all) {
  const boxes = [...document.querySelectorAll('input[name="link"]')];
  const show = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && !all.checked;
  };
  all.hidden = false;
  all.addEventListener("change", () => {
    boxes.forEach((box) => (box.checked = all.checked));
    show();
  });
  boxes.forEach((box) => box.addEventListener("change", show));
  show();
}
