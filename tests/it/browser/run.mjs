// A page of another origin in a real browser: tries every request of a plan in every way a page has.
//
// node run.mjs PLAYWRIGHT CHROMIUM PLAN. The plan is {"origins": [...], "requests": [{"route", "method", "url",
// "bytes"}]}; an origin is "other" (another site), "port" (another port of loopback) or "null" (a sandboxed
// frame). Prints one JSON line for each request from each origin: the ways in which the page could read the
// answer.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [packages, executablePath, planFile] = process.argv.slice(2);
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");
const plan = JSON.parse(readFileSync(planFile, "utf8"));

// A separate server serves the pages, so their origin differs from every hub's.
const server = createServer((_, answer) => {
  answer.setHeader("content-type", "text/html");
  answer.end('<!doctype html><iframe id="sandbox" sandbox="allow-scripts allow-forms" srcdoc="<p>here"></iframe>');
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const { port } = server.address();

const home = mkdtempSync(join(tmpdir(), "rialto-browser-"));
const browser = await chromium.launchPersistentContext(home, {
  executablePath,
  headless: true,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    // No name of the plan leaves this machine.
    "--host-resolver-rules=MAP *.example 127.0.0.1",
  ],
});
try {
  for (const origin of plan.origins) {
    const page = await browser.newPage();
    const host = origin === "other" ? "page.example" : "127.0.0.1";
    await page.goto(`http://${host}:${port}/`);
    const frame = origin === "null" ? page.frames().find((frame) => frame !== page.mainFrame()) : page.mainFrame();
    const at_once = 6;
    for (let first = 0; first < plan.requests.length; first += at_once) {
      const some = plan.requests.slice(first, first + at_once);
      const read = await Promise.all(some.map((request) => frame.evaluate(attempt, request)));
      some.forEach(({ route }, at) => console.log(JSON.stringify({ origin, route, read: read[at] })));
    }
    await page.close();
  }
  console.log(JSON.stringify({ end: true }));
} finally {
  await browser.close();
  server.close();
  rmSync(home, { recursive: true, force: true });
}

// Runs in the page.
async function attempt({ method, url, bytes }) {
  const long = 20_000;
  const body = bytes && new Uint8Array(bytes);
  const reads = method === "GET";
  const read = [];
  const within = (promise) =>
    Promise.race([promise, new Promise((over) => setTimeout(() => over("waited in vain"), long))]);

  // A cross-origin fetch whose answer the page tries to read.
  const fetched = async (way, headers, sent) => {
    const stop = new AbortController();
    try {
      const answer = await within(fetch(url, { method, headers, body: sent, signal: stop.signal }));
      if (answer.status) read.push(way);
    } catch { /* The browser kept it from the page. */ }
    stop.abort();
  };
  const sent = reads ? undefined : body ?? new Uint8Array();
  const plain = () => (reads ? undefined : new Blob([sent], { type: "text/plain" }));
  const ways = [fetched("preflighted", { "content-type": "application/json", "x-asked": "1" }, sent)];
  if (!reads) ways.push(fetched("octets", { "content-type": "application/octet-stream" }, sent));
  if (reads || method === "POST") {
    ways.push(fetched("simple", {}, plain()));
    // One whose answer it does not read.
    const stop = new AbortController();
    const blind = fetch(url, { method, mode: "no-cors", credentials: "include", body: plain(), signal: stop.signal });
    ways.push(within(blind).catch(() => {}).then(() => stop.abort()));
  }
  if (method === "POST") {
    navigator.sendBeacon?.(url, plain());
    ways.push(framed((frame) => {
      const form = document.createElement("form");
      Object.assign(form, { action: url, method: "POST", enctype: "text/plain", target: frame.name });
      // Sent as `name=value`, which is JSON again.
      const more = (end) => (end === "{}" ? '{"_":"' : ',"_":"');
      const text = new TextDecoder("latin1").decode(sent).replace(/^\{\}$|\}\s*$/, more);
      form.append(Object.assign(document.createElement("input"), { name: text, value: '"}' }));
      document.body.append(form);
      form.submit();
      form.remove();
    }));
  }
  if (reads) {
    // A navigation is slowest, and the same from every origin.
    if (location.hostname.endsWith(".example")) ways.push(framed((frame) => { frame.src = url; }));
    ways.push(loaded(Object.assign(new Image(), { src: url })));
    ways.push(within(new Promise((done) => {
      const events = new EventSource(url);
      const opened = () => { read.push("events"); events.close(); done(); };
      events.onopen = events.onmessage = opened;
      events.onerror = () => { events.close(); done(); };
    })));
  }
  // Browsers slow down pages whose sockets fail, so this is tried only where there is one.
  if (url.endsWith("/ws")) {
    ways.push(within(new Promise((done) => {
      const socket = new WebSocket(url.replace("http", "ws"));
      socket.onopen = () => { read.push("socket"); if (body) socket.send(body); socket.close(); done(); };
      socket.onerror = socket.onclose = done;
    })));
  }
  await Promise.all(ways);
  return read;

  async function framed(begin) {
    const frame = document.createElement("iframe");
    frame.name = `frame${Math.random()}`;
    document.body.append(frame);
    const done = loaded(frame);
    begin(frame);
    await done;
    try {
      if (frame.contentDocument?.body?.textContent) read.push("frame");
    } catch { /* It is of another origin. */ }
    frame.remove();
  }

  function loaded(element) {
    return within(new Promise((done) => { element.onload = element.onerror = done; }));
  }
}
