// Load at given rates, and a ladder that stops where throughput rises no more: both
// from the form, with what the page says of the engine and of the measuring machine.
import { figure } from "../support/figures.js";
import { startStandIn, startTokdyno } from "../support/program.js";
import { expect, hydrated, test } from "../support/test.js";

// The stand-in runs faster than the engine it stands for, to keep the test short.
// SGLang tells of itself only when asked to.
const OPTIONS = ["--sim-speed", "4", "--enable-metrics"];
const REQUESTS = 16;

let tokdyno, server;

test.beforeAll(async () => {
  [tokdyno, server] = await Promise.all([startTokdyno(), startStandIn("sglang", OPTIONS)]);
});

test.afterAll(async () => {
  await Promise.all([tokdyno, server].map((program) => program?.stop()));
});

/** Opens *New measurement* with a load by hand, small and once. */
async function openForm(page, name) {
  await page.goto(`${tokdyno.url}/runs/new`);
  await hydrated(page);
  await page.getByLabel("Address").fill(server.url);
  await expect(page.getByText(/SGLang 0\.\d/).first()).toBeVisible();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("radio", { name: /custom/ }).check();
  await page.getByLabel("Single-stream requests").fill("");
  await page.getByLabel("Output tokens per request").fill("16");
  await page.getByLabel("Repeats", { exact: true }).fill("1");
}

/** Starts what the form says and waits for its end; gives the run's result file. */
async function measure(page) {
  await page.getByRole("button", { name: /^Start/ }).click();
  await page.waitForURL(/\/runs\/\d+$/);
  await expect(page.getByText("finished", { exact: true }).first()).toBeVisible({
    timeout: 120_000,
  });
  return (await page.request.get(`${page.url()}.json`)).json();
}

test("load at given rates", async ({ page }) => {
  test.setTimeout(180_000);
  await openForm(page, "at rates");
  await page.getByRole("radio", { name: /So many requests per second/ }).check();
  const rates = page.getByRole("textbox", { name: "Requests per second" });
  await rates.fill("fast");
  await expect(page.getByText(/`fast` is not a list of rates/)).toBeVisible();
  await rates.fill("4, 8");
  await page.getByText("Size of a stage").click();
  await page.getByLabel("Requests per stage", { exact: true }).fill(String(REQUESTS));
  await page.getByText("Goodput, prefix cache, thinking").click();
  await page.getByLabel("First token within, ms").fill("60000");
  await expect(page.getByText(/4 req\/s \(Poisson\)/)).toBeVisible();

  const result = await measure(page);
  expect(result.stages.map((stage) => [stage.kind, stage.rate, stage.completed])).toEqual([
    ["open_loop", 4, REQUESTS],
    ["open_loop", 8, REQUESTS],
  ]);
  const table = page.getByRole("region", { name: "Load at given rates" });
  for (const stage of result.stages) {
    expect(stage.ttft_intended_ms.count).toBe(REQUESTS);
    expect(stage.goodput.good).toBe(REQUESTS);
    for (const value of [
      stage.request_throughput,
      stage.ttft_ms.p50,
      stage.ttft_intended_ms.p50,
      stage.goodput.requests_per_s,
    ]) {
      await expect(table).toContainText(figure(value));
    }
  }
  await expect(page.getByRole("heading", { name: "Load levels" })).toHaveCount(0);
  await expect(page.getByRole("heading", { name: "Stages left out" })).toHaveCount(0);
  const engine = page.getByRole("region", { name: "Engine meanwhile" });
  await expect(engine).toContainText("Running at most");
  const machine = page.getByRole("region", { name: "Measuring machine", exact: true });
  await expect(machine).toContainText(/this machine times .* chunks\/s truthfully/);

  // Measured again, the form says what was measured.
  await page.getByRole("link", { name: /[Mm]easure again/ }).first().click();
  await page.waitForURL(/\/runs\/new\?/);
  await hydrated(page);
  await expect(page.getByRole("radio", { name: /So many requests per second/ })).toBeChecked();
  await expect(page.getByRole("textbox", { name: "Requests per second" })).toHaveValue("4,8");
  await expect(page.getByLabel("First token within, ms")).toHaveValue("60000");

  await page.goto(`${tokdyno.url}/runs`);
  await hydrated(page);
  await expect(page.getByText("at 8 req/s (Poisson)")).toBeVisible();
});

test("a ladder stops where nothing is gained", async ({ page }) => {
  test.setTimeout(240_000);
  await openForm(page, "up to saturation");
  await page.getByRole("radio", { name: /Find saturation/ }).check();
  await page.getByLabel("Up to how many at once").fill("256");
  await page.getByLabel("Stop when a step gains less than").fill("50");

  const result = await measure(page);
  const measured = result.stages.map((stage) => stage.concurrency);
  const ladder = [1, 2, 4, 8, 16, 32, 64, 128, 256];
  expect(result.skipped.length).toBeGreaterThan(0);
  expect(measured).toEqual(ladder.slice(0, ladder.length - result.skipped.length));
  const skipped = page.getByRole("region", { name: "Stages left out" });
  await expect(skipped).toContainText("C = 256");
  await expect(skipped).not.toContainText(`C = ${measured.at(-1)},`);
  const levels = page.getByRole("region", { name: "Load levels" });
  await expect(levels).toContainText(`C = ${measured.at(-1)}`);
});
