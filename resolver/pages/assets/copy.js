// Shows the buttons that copy a short link. Without scripts they stay hidden, and the link is
// selected by hand.
for (const button of document.querySelectorAll("button.copy")) {
  const text = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = button.dataset.done;
      setTimeout(() => (button.textContent = text), 2000);
    } catch {
      // Browsers refuse without HTTPS or permission. The link beside is then selected.
      const link = button.previousElementSibling;
      if (link) getSelection().selectAllChildren(link);
    }
  });
}
