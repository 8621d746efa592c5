// The tests start the real program themselves (TOKDYNO_BIN) with stand-in
// engines, each on a port of its own, so that there is no web server here.
import { existsSync } from "node:fs";
import { defineConfig, devices } from "@playwright/test";

// Browsers of the system; nothing is downloaded.
const browsers = [
  process.env.TOKDYNO_CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];
const executablePath = browsers.find((path) => path && existsSync(path));
if (!executablePath) {
  throw new Error(
    "No Chromium was found. Install it (`apt-get install chromium`) or name it in TOKDYNO_CHROMIUM.",
  );
}

const inCi = Boolean(process.env.CI);

export default defineConfig({
  testDir: "./tests",
  // Programs under test measure time: one after another.
  workers: 1,
  fullyParallel: false,
  forbidOnly: true,
  // A test that passes at the second try has found something.
  retries: 0,
  timeout: 120_000,
  expect: { timeout: 15_000 },
  reporter: inCi ? [["list"], ["html", { open: "never" }]] : [["list"]],
  use: {
    ...devices["Desktop Chrome"],
    trace: "retain-on-failure",
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath,
      // Chromium's sandbox needs user namespaces, which root and containers lack.
      args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
    },
  },
});
