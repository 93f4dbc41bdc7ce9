// Puts a chosen or dropped file into the field of rows, and offers the result as a file. Without
// scripts rows are pasted, and the result is copied out of its field.
const BYTES_MAX = 2 * 1024 * 1024;

// Reads UTF-8, and UTF-16 by its byte order mark, as spreadsheets write it. Returns null for a file
// in another encoding.
const decoded = (bytes) => {
  const mark = bytes.slice(0, 2).join();
  const encoding = { "255,254": "utf-16le", "254,255": "utf-16be" }[mark] ?? "utf-8";
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
};

const form = document.querySelector("form.bulk");
if (form) {
  const rows = document.getElementById("rows");
  const picker = document.getElementById("file");
  const wrong = document.getElementById("file-wrong");
  const foreign = document.getElementById("file-foreign");
  const read = async (file) => {
    wrong.hidden = file.size <= BYTES_MAX;
    foreign.hidden = true;
    if (wrong.hidden) {
      const text = decoded(new Uint8Array(await file.arrayBuffer()));
      foreign.hidden = text !== null;
      rows.value = text ?? rows.value;
      rows.focus();
    }
  };
  picker.parentElement.hidden = false;
  picker.addEventListener("change", () => picker.files.length && read(picker.files[0]));
  rows.addEventListener("dragover", (event) => {
    if (event.dataTransfer.types.includes("Files")) event.preventDefault();
  });
  rows.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    read(file);
  });
  // A form that is sent twice would create its links twice. The pressed button is part of the form,
  // so it is disabled after the form was read.
  const buttons = form.querySelectorAll("button");
  const working = form.querySelector(".working");
  const isSent = (sent) => {
    buttons.forEach((button) => (button.disabled = sent));
    working.hidden = !sent;
  };
  form.addEventListener("submit", () => setTimeout(() => isSent(true)));
  addEventListener("pageshow", () => isSent(false));
}

const download = document.getElementById("download");
if (download) {
  download.hidden = false;
  download.addEventListener("click", () => {
    // Spreadsheets take a file for UTF-8 only if it begins with a byte order mark.
    const blob = new Blob(["\ufeff", document.getElementById("csv").value], { type: "text/csv" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = download.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
