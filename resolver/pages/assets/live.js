// Keeps the number of visits current while the page is visible. Without scripts, the number of the
// page load stays.
const PAUSE_MS = 2_000;
const PAUSE_AFTER_REFUSAL_MS = 30_000;
const REFUSALS_THAT_STAY = [400, 401, 403, 404];

const shown = document.querySelector("[data-live]");
const format = new Intl.NumberFormat(document.documentElement.lang);
let visits = Number(shown?.dataset.visits);
let timer = 0;
let isAsking = false;
let isOver = shown === null;

// Asks for the number. Returns how long to wait before the next time.
async function ask() {
  // A redirect would lead to the sign-in: the session has ended.
  const headers = { accept: "application/json" };
  const answer = await fetch(shown.dataset.live, { redirect: "manual", headers });
  isOver = answer.type === "opaqueredirect" || REFUSALS_THAT_STAY.includes(answer.status);
  if (!answer.ok) return PAUSE_AFTER_REFUSAL_MS;
  const now = (await answer.json()).visits;
  if (now !== visits) {
    visits = now;
    shown.textContent = format.format(now);
  }
  return PAUSE_MS;
}

async function turn() {
  isAsking = true;
  const pause = await ask().catch(() => PAUSE_AFTER_REFUSAL_MS);
  isAsking = false;
  plan(pause);
}

function plan(pause) {
  clearTimeout(timer);
  if (isOver || isAsking || document.visibilityState !== "visible") return;
  timer = setTimeout(turn, pause);
}

document.addEventListener("visibilitychange", () => plan(0));
plan(PAUSE_MS);
