// Suggests tags behind each comma of a field. Without scripts the first tag alone is suggested.
for (const field of document.querySelectorAll("input[data-tags]")) {
  const options = [...field.list.options];
  const tags = options.map((option) => option.value);
  const suggestBehind = (text) => options.forEach((option, index) => (option.value = text + tags[index]));
  field.addEventListener("input", () => {
    const [before] = /^.*[,，]|/.exec(field.value);
    suggestBehind(before && `${before} `);
  });
  // Another field may have the same suggestions.
  field.addEventListener("blur", () => suggestBehind(""));
}
