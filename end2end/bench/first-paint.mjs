// First contentful paint of the Board on loopback with 1,000 runs stored.
// TOKDYNO_BIN names the program; prints one line per load, and the median.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { chromium } from "@playwright/test";

import { startStandIn, startTokdyno } from "../support/program.js";

const RUNS = 1000;
const CONFIGURATIONS = 12;
const LOADS = 11;

const bin = resolve(process.env.TOKDYNO_BIN ?? "../target/release/tokdyno");
process.env.TOKDYNO_BIN = bin;
const executablePath = [process.env.TOKDYNO_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser"].find(
  (path) => path && existsSync(path),
);

/** A true result of the stand-in, to be stored many times over. */
async function sampleResult() {
  const folder = mkdtempSync(join(tmpdir(), "tokdyno-paint-"));
  const file = join(folder, "result.json");
  const server = await startStandIn("sglang", ["--sim-speed", "8"]);
  try {
    const levels = ["--concurrency", "1,8,32,128", "--repeats", "3", "--output-tokens", "32"];
    execFileSync(bin, ["bench", "--url", server.url, ...levels, "--json", file], { stdio: "ignore" });
    return JSON.parse(readFileSync(file, "utf8"));
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const tokdyno = await startTokdyno();
const browser = await chromium.launch({
  executablePath,
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
try {
  const result = await sampleResult();
  // Figures only: a thousand times the records would be another benchmark.
  result.stages.forEach((stage) => (stage.records = []));
  for (let run = 0; run < RUNS; run++) {
    result.started_at += 1;
    result.configuration = `configuration ${run % CONFIGURATIONS}`;
    const reply = await fetch(`${tokdyno.url}/api/v1/import`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(result),
    });
    if (!reply.ok) throw new Error(`import ${run}: ${reply.status} ${await reply.text()}`);
  }
  const paints = [];
  for (let load = 0; load < LOADS; load++) {
    // A context of its own: nothing is cached.
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${tokdyno.url}/?simulated=true`);
    const paint = await page.evaluate(
      () =>
        new Promise((done) => {
          const observer = new PerformanceObserver((list) => {
            const found = list.getEntriesByName("first-contentful-paint")[0];
            if (found) done(found.startTime);
          });
          observer.observe({ type: "paint", buffered: true });
        }),
    );
    paints.push(paint);
    console.log(`load ${load + 1}: first contentful paint after ${paint.toFixed(0)} ms`);
    await context.close();
  }
  paints.sort((a, b) => a - b);
  console.log(`Board with ${RUNS} runs stored: median ${paints[(LOADS - 1) / 2].toFixed(0)} ms over ${LOADS} loads`);
} finally {
  await browser.close();
  await tokdyno.stop();
}
