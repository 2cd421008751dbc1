// Replaces the content of the page every two seconds by what the server renders now.
"use strict";

const PAUSE_MS = 2000;
const TIMEOUT_MS = 10000;

async function refresh() {
  try {
    const response = await fetch("/", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(String(response.status));
    // A parsed document is inert: its scripts never run.
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    show("state", next.getElementById("state"));
    show("content", next.getElementById("content"));
    document.title = next.title;
    document.body.classList.remove("stale");
  } catch {
    document.title = "Longhaul: no response";
    document.body.classList.add("stale");
  }
  setTimeout(refresh, PAUSE_MS);
}

function show(id, next) {
  const present = document.getElementById(id);
  // Screen readers announce a state when it changes, and only then.
  if (next && !present.isEqualNode(next)) present.replaceWith(document.adoptNode(next));
}

setTimeout(refresh, PAUSE_MS);
