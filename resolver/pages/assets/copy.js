// Shows the buttons that copy a short link. Without scripts they stay hidden, and the link is
// selected by hand.

// Copies a text as browsers without HTTPS can: out of a field in which it is selected.
const copySelected = (button) => {
  const field = document.createElement("textarea");
  field.value = button.dataset.copy;
  button.after(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
};

for (const button of document.querySelectorAll("button.copy")) {
  const text = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      if (!copySelected(button)) {
        // Then the link beside is selected.
        const link = button.previousElementSibling ?? button.closest("tr")?.querySelector("a");
        if (link) getSelection().selectAllChildren(link);
        return;
      }
      button.focus();
    }
    button.textContent = button.dataset.done;
    setTimeout(() => (button.textContent = text), 2000);
  });
}
