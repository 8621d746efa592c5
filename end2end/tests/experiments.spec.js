// Which NCCL setting is faster, and how sure is that? A grid of three protocols by three
// algorithms, planned in the browser on this machine with the stand-in engine, goes on
// after the server was killed in the middle, and ends with a figure in every field.
import { rmSync } from "node:fs";

import AxeBuilder from "@axe-core/playwright";

import { BIN, freePort, freshDataDir, startTokdyno } from "../support/program.js";
import { expect, hydrated, test } from "../support/test.js";

const LAUNCHES_PER_CELL = 3;
const CELLS = 9;
const LAUNCHES = CELLS * LAUNCHES_PER_CELL;
// A launch loads, is proved, measured and stopped; the test machine does more besides.
const ALL_MS = 15 * 60_000;
const PROFILE = "stand-in";

const dataDir = freshDataDir();
let tokdyno, api;

/** Starts the program, or starts it again on the same data. */
async function begin(playwright) {
  tokdyno = await startTokdyno({ dataDir });
  api = await playwright.request.newContext({ baseURL: tokdyno.url });
}

test.beforeAll(async ({ playwright }) => {
  await begin(playwright);
  const post = async (path, data) => {
    const reply = await api.post(`/api/v1/${path}`, { data });
    expect(reply.status(), `${path}: ${await reply.text()}`).toBe(201);
    return reply.json();
  };
  const { host } = await post("hosts", { name: "this machine", local: true });
  expect((await api.post(`/api/v1/hosts/${host}/check`)).ok()).toBe(true);
  const { builtins } = await read("/api/v1/profiles");
  const { spec } = builtins.find((builtin) => builtin.id === "sglang-base");
  await post("profiles", {
    name: PROFILE,
    spec: {
      ...spec,
      program: BIN,
      arguments: ["simulate", "sglang", ...spec.arguments.slice(2), "--sim-speed", "20"],
      parameters: { ...spec.parameters, port: await freePort() },
    },
  });
});

test.afterAll(async () => {
  for (const launch of api ? (await read("/api/v1/launches")).alive : []) {
    await api.post(`/api/v1/launches/${launch.id}/stop`);
  }
  await api?.dispose();
  await tokdyno?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

async function read(path) {
  const reply = await api.get(path);
  expect(reply.ok(), `${path}: ${await reply.text()}`).toBe(true);
  return reply.json();
}

test.describe("while the server is away", () => {
  // The page goes on asking a server that was killed.
  test.use({ allowErrors: [/ERR_CONNECTION_REFUSED|Failed to fetch/] });

  test("a grid survives a kill and ends with a figure in every field", async ({
    page,
    playwright,
  }) => {
    test.setTimeout(ALL_MS + 120_000);

    await page.goto(`${tokdyno.url}/experiments`);
    await hydrated(page);
    await expect(page.getByText("No experiment was planned yet")).toBeVisible();
    await page.getByRole("link", { name: "Plan an NCCL grid" }).click();
    await page.waitForURL(/\/experiments\/new\?/);

    // The address has ticked both factors. Of the protocols, LL128 is left alone: where
    // hardware is not known to carry it, it corrupts data.
    const factor = (name) => page.getByRole("group", { name, exact: true });
    for (const name of ["NCCL_PROTO", "NCCL_ALGO"]) {
      await expect(factor(name).getByRole("checkbox", { name: `Vary ${name}` })).toBeChecked();
    }
    await expect(factor("NCCL_PROTO").getByLabel("LL128")).not.toBeChecked();
    await expect(page.getByRole("radio", { name: /Full grid/ })).toBeChecked();
    await page.getByLabel("Name", { exact: true }).fill("Protocol or algorithm?");
    await page.getByLabel("Launches of each configuration").fill(String(LAUNCHES_PER_CELL));
    await page.getByRole("radio", { name: /custom/ }).check();
    await page.getByLabel("Single-stream requests").fill("1");
    await page.getByRole("textbox", { name: "Concurrencies" }).fill("2");
    await page.getByLabel("Output tokens per request").fill("8");
    await page.getByLabel("Repeats", { exact: true }).fill("1");

    // What it comes to, before it begins.
    const preview = page.getByRole("region", { name: "What it comes to" });
    await expect(preview).toContainText(`${CELLS} configurations, ${LAUNCHES} launches`);
    await preview.getByText("configurations with their commands").click();
    await expect(preview.getByText(/NCCL_PROTO=Simple/).first()).toBeVisible();

    // What is wrong is said beside its field.
    await page.getByLabel("Look after so many launches of each").fill("3");
    await expect(page.getByRole("alert").filter({ hasText: /looks/ })).toBeVisible();
    await page.getByLabel("Look after so many launches of each").fill("");

    await page.getByRole("button", { name: "Start the experiment" }).click();
    await page.waitForURL(/\/experiments\/\d+$/);
    const address = new URL(page.url()).pathname;
    const id = Number(address.split("/").pop());
    const experiment = () => read(`/api/v1/experiments/${id}`);
    const done = async () =>
      (await experiment()).cells
        .flatMap((cell) => cell.trials)
        .filter((trial) => trial.state === "done").length;

    const board = page.getByRole("region", { name: "Launches of every configuration" });
    await expect(board.getByRole("row")).toHaveCount(CELLS + 1);
    await expect(board.getByText("running", { exact: true })).toBeVisible({ timeout: 60_000 });
    await expect(board.getByText("done", { exact: true }).first()).toBeVisible({ timeout: 120_000 });

    // A pause gives the host back; the launch under way is made again afterwards.
    await page.getByRole("button", { name: "Pause" }).click();
    await expect(page.getByText("paused", { exact: true }).first()).toBeVisible({ timeout: 60_000 });
    expect((await read("/api/v1/launches")).alive).toEqual([]);
    await page.getByRole("button", { name: "Resume" }).click();
    await expect(board.getByText("running", { exact: true })).toBeVisible({ timeout: 60_000 });
    // Who changes their mind has ended nothing.
    await page.getByRole("button", { name: "Cancel experiment" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel", exact: true }).click();
    await expect(page.getByRole("dialog")).toBeHidden();

    // In the middle of it, without a chance to say good-bye.
    await expect.poll(done, { timeout: ALL_MS / 2 }).toBeGreaterThanOrEqual(4);
    const before = (await experiment()).cells.flatMap((cell) => cell.trials);
    await api.dispose();
    await tokdyno.kill();
    await begin(playwright);

    await page.goto(`${tokdyno.url}${address}`);
    await hydrated(page);
    await expect(page.getByText("simulated", { exact: true }).first()).toBeVisible();
    const state = async () => (await experiment()).summary.state;
    await expect.poll(state, { timeout: ALL_MS, intervals: [2_000] }).toMatch(
      /finished|failed|cancelled|paused/,
    );
    const view = await experiment();
    expect(view.summary.state, view.summary.reason).toBe("finished");
    const trials = view.cells.flatMap((cell) => cell.trials);
    expect(trials).toHaveLength(LAUNCHES);
    expect(trials.map((trial) => trial.state)).toEqual(trials.map(() => "done"));
    // What was measured before was not measured again.
    for (const old of before.filter((trial) => trial.state === "done")) {
      expect(trials.find((trial) => trial.number === old.number).run).toBe(old.run);
    }

    // The page has seen the end by itself.
    await expect(page.getByText("finished", { exact: true }).first()).toBeVisible();
    const map = page.getByRole("region", { name: "Single-stream speed", exact: true }).first();
    const fields = map.locator("td.heat-field");
    await expect(fields).toHaveCount(CELLS);
    for (const field of await fields.all()) {
      await expect(field.locator(".heat-figure")).toHaveText(/\d/);
      await expect(field).toContainText(`${LAUNCHES_PER_CELL} launches`);
      await expect(field.getByRole("link", { name: /^run \d+$/ })).toHaveCount(LAUNCHES_PER_CELL);
    }
    await expect(page.getByRole("heading", { name: "What each level does" })).toBeVisible();
    await expect(page.locator(".js-plotly-plot").first()).toBeVisible({ timeout: 30_000 });
    const svg = await page.request.get(`${tokdyno.url}${address}/charts/experiment-front.svg`);
    expect(svg.status()).toBe(200);

    // Readable for everybody, also on a telephone.
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const faults = (await new AxeBuilder({ page }).analyze()).violations;
      expect(
        faults.map((fault) => `${fault.id}: ${fault.nodes.map((node) => node.target).join(", ")}`),
      ).toEqual([]);
    }
    await page.setViewportSize({ width: 360, height: 740 });
    // The chart follows a moment after the window.
    const overflow = () =>
      page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
    await expect.poll(overflow, { message: "wider than 360 px" }).toBeLessThanOrEqual(0);

    // From a figure to the requests behind it.
    await fields.first().getByRole("link", { name: /^run \d+$/ }).first().click();
    await page.waitForURL(/\/runs\/\d+$/);
    await expect(page.getByText("finished", { exact: true }).first()).toBeVisible();
  });
});
