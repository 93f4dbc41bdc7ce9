// Warns of colours that many readers of QR codes cannot tell apart. The same rule as in
// `qr/src/options.rs` (WCAG 2.2).
const CONTRAST_MIN = 3;

const luminance = (color) => {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const value = parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};

const color = document.getElementById("qr-color");
const background = document.getElementById("qr-background");
if (color && background) {
  const warn = () => {
    const [dark, light] = [luminance(color.value), luminance(background.value)];
    const contrast = (Math.max(dark, light) + 0.05) / (Math.min(dark, light) + 0.05);
    document.getElementById("qr-low-contrast").hidden = contrast >= CONTRAST_MIN;
    document.getElementById("qr-inverted").hidden = contrast < CONTRAST_MIN || dark <= light;
  };
  color.addEventListener("input", warn);
  background.addEventListener("input", warn);
  warn();
}
