// The main job, as a person does it: measure two servers from the browser, see the
// numbers arrive, stop one, compare, share, and open the link elsewhere.
import { figure, outputTps, singleStream, stagesOf } from "../support/figures.js";
import { NCCL_TUNED, startStandIn, startTokdyno } from "../support/program.js";
import { expect, hydrated, test, watch } from "../support/test.js";

const OUTPUT_TOKENS = 64;
const LEVELS = "1, 8, 32, 128";
// Single stream, then four requests per slot.
const SIZES = [3, 4, 32, 128, 512];
// The stand-ins run faster than the engines they stand for, to keep the test short.
const SPEED = ["--sim-speed", "4"];
// The test machine is shared: what is compared are rates, not moments.
const TOLERANCE = 0.05;

let tokdyno, untuned, tuned;

test.beforeAll(async () => {
  [tokdyno, untuned, tuned] = await Promise.all([
    startTokdyno(),
    startStandIn("sglang", SPEED),
    startStandIn("sglang", SPEED, NCCL_TUNED),
  ]);
});

test.afterAll(async () => {
  await Promise.all([tokdyno, untuned, tuned].map((program) => program?.stop()));
});

/** Fills *New measurement* and starts it; gives the run's number. */
async function startRun(page, server, name, fill = {}) {
  await page.goto(`${tokdyno.url}/runs/new`);
  await hydrated(page);
  await page.getByLabel("Address").fill(server.url);
  await expect(page.getByText(/SGLang 0\.\d/).first()).toBeVisible();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Hardware, in words").fill("no GPU at all");
  await page.getByRole("radio", { name: /custom/ }).check();
  await page.getByLabel("Single-stream requests").fill("3");
  await page.getByRole("textbox", { name: "Concurrencies" }).fill(fill.levels ?? LEVELS);
  await page.getByLabel("Output tokens per request").fill(String(fill.tokens ?? OUTPUT_TOKENS));
  await page.getByLabel("Repeats", { exact: true }).fill("1");
  await page.getByRole("button", { name: /^Start/ }).click();
  await page.waitForURL(/\/runs\/\d+$/);
  return Number(page.url().split("/").pop());
}

/** Compares what the page and the export say with what the stand-in sent. */
async function checkFigures(page, run, server) {
  const stages = stagesOf(server.truth(), OUTPUT_TOKENS, SIZES);
  const result = await (await page.request.get(`${tokdyno.url}/runs/${run}.json`)).json();
  expect(result.endpoint.simulated).toBe(true);
  expect(result.stages.map((stage) => stage.completed)).toEqual(SIZES);
  result.stages.forEach((stage, index) => {
    const sent = stages[index].reduce((sum, line) => sum + line.tokens, 0);
    expect(stage.output_tokens, `tokens of stage ${index}`).toBe(sent);
  });
  const near = (value, truth, what) => {
    expect(value, what).toBeGreaterThan(truth * (1 - TOLERANCE));
    expect(value, what).toBeLessThan(truth * (1 + TOLERANCE));
  };
  near(result.stages[0].e2e_tps.p50, singleStream(stages[0]), "single stream");
  for (let index = 1; index < SIZES.length; index++) {
    near(result.stages[index].output_tps, outputTps(stages[index]), `stage ${index}`);
  }
  const levels = page.getByRole("region", { name: "Load levels" });
  await expect(levels).toContainText(figure(result.stages[0].e2e_tps.p50));
  await expect(levels).toContainText(figure(result.stages[4].output_tps));
  return { single: result.stages[0].e2e_tps.p50, throughput: result.stages[4].output_tps };
}

test("measure, watch, cancel, compare, share", async ({ page, browser }) => {
  test.setTimeout(240_000);

  await page.goto(tokdyno.url);
  await expect(page.getByText("Best for one user")).toBeVisible();
  await expect(page.getByText("90.0").first()).toBeVisible();

  const first = await startRun(page, untuned, "SGLang untuned");
  await expect(page.getByRole("heading", { name: "Measuring", exact: true })).toBeVisible();
  const bar = page.getByRole("progressbar", { name: "Progress of the run" });
  await expect.poll(() => bar.evaluate((bar) => bar.value), { timeout: 60_000 }).toBeGreaterThan(0);
  await expect(page.getByText("tok/s now")).toBeVisible();
  await expect(page.getByRole("heading", { name: "Measuring", exact: true })).toBeHidden({ timeout: 90_000 });
  await expect(page.getByText("finished", { exact: true }).first()).toBeVisible();
  const slow = await checkFigures(page, first, untuned);

  const second = await startRun(page, tuned, "SGLang with NCCL variables");
  await expect(page.getByText("finished", { exact: true }).first()).toBeVisible({ timeout: 90_000 });
  const fast = await checkFigures(page, second, tuned);
  // The founding notes' gain: 63.6 to 90.0 tok/s for one user.
  expect(fast.single / slow.single).toBeGreaterThan(1.3);

  const third = await startRun(page, untuned, "to be stopped", { levels: "8", tokens: 4096 });
  await expect(page.getByRole("heading", { name: "Measuring", exact: true })).toBeVisible();
  await expect(bar).toBeVisible();
  await page.getByRole("button", { name: "Cancel run" }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click();
  await expect(page.getByText("cancelled", { exact: true }).first()).toBeVisible({ timeout: 30_000 });

  await page.goto(`${tokdyno.url}/runs`);
  await hydrated(page);
  await expect(page.getByRole("link", { name: "to be stopped" })).toBeVisible();
  for (const run of [first, second]) {
    await page.getByRole("checkbox", { name: new RegExp(`Compare run ${run},`) }).check();
  }
  await page.getByRole("button", { name: /Compare/ }).first().click();
  await page.waitForURL(/\/compare\?/);
  await expect(page.getByText(/launch-to-launch variation unknown/).first()).toBeVisible();
  await expect(page.locator("body")).toContainText("simulated");
  await expect(page.locator(".js-plotly-plot").first()).toBeVisible({ timeout: 30_000 });

  // Every figure can be traced to the requests behind it.
  const compared = page.url();
  const table = page.getByRole("region", { name: "Figures with their ratio to the baseline" });
  await table.locator(`a[href="/runs/${second}?level=single-stream#records"]`).first().click();
  await page.waitForURL(new RegExp(`/runs/${second}\\?level=single-stream#records`));
  const records = page.getByRole("region", { name: "Request records" });
  await expect(records).toBeVisible();
  await expect(page.getByText("Only those of single stream.")).toBeVisible();
  await expect(records.locator("tbody tr")).toHaveCount(SIZES[0]);
  await expect(records.locator("tbody tr").first()).toContainText("single stream, repeat 1");
  await page.goto(compared);
  await hydrated(page);

  await page.getByRole("button", { name: "Share" }).click();
  await page.getByLabel("Title").fill("Do the NCCL variables help?");
  await page.getByRole("dialog").getByRole("button", { name: /Freeze|Share/ }).click();
  const link = await page.getByRole("textbox", { name: "Link" }).inputValue();
  expect(link).toMatch(/\/c\/[0-9a-f]{32}$/);

  const elsewhere = await browser.newContext();
  const guest = await elsewhere.newPage();
  const errors = watch(guest);
  const shared = new URL(link, tokdyno.url).href;
  const response = await guest.goto(shared);
  const html = await response.text();
  expect(html).toContain("<title>Do the NCCL variables help?");
  expect(html).toContain('property="og:title"');
  for (const value of [slow.single, fast.single, slow.throughput, fast.throughput]) {
    await expect(guest.locator("body")).toContainText(figure(value));
  }
  const bytes = await (await guest.request.get(`${shared}.json`)).body();
  expect(bytes.length).toBeGreaterThan(1000);
  for (const ending of ["csv", "svg"]) {
    expect((await guest.request.get(`${shared}.${ending}`)).status(), ending).toBe(200);
  }

  // What is frozen stays, whatever becomes of its runs.
  await page.goto(`${tokdyno.url}/runs/${third}`);
  await hydrated(page);
  await page.goto(`${tokdyno.url}/runs/${first}`);
  await hydrated(page);
  await page.getByRole("button", { name: "Delete" }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: /Delete/ }).click();
  await page.waitForURL(/\/runs$/);
  const again = await (await guest.request.get(`${shared}.json`)).body();
  expect(again.equals(bytes)).toBe(true);
  expect(errors, "errors in the guest's console").toEqual([]);
  await elsewhere.close();
});
