// The buttons the product exists for: on a host reached over SSH, where production holds
// the GPUs, launch and measure the untuned and the tuned profile, see on the Board that
// they ran as the profiles say, and find production running again.
import { existsSync } from "node:fs";

import { figure, outputTps, singleStream, stagesOf } from "../support/figures.js";
import { startHost, startProduction, truthLog } from "../support/host.js";
import { BIN, freePort, startTokdyno } from "../support/program.js";
import { expect, hydrated, test } from "../support/test.js";

const OUTPUT_TOKENS = 64;
const CONCURRENCY = 8;
// Single stream, then four requests per slot.
const SIZES = [3, 4 * CONCURRENCY];
// The test machine is shared: what is compared are rates, not moments.
const TOLERANCE = 0.05;
// Loading, measuring and restoring, on a machine that does more besides.
const LAUNCH_MS = 90_000;

let host, production, tokdyno, api;
const logs = { "sglang-base": truthLog(), "sglang-nccl-cd4": truthLog() };

test.beforeAll(async ({ playwright }) => {
  host = await startHost();
  production = await startProduction(await freePort(), host.gpus);
  tokdyno = await startTokdyno({ args: ["--ssh-config", host.sshConfig] });
  api = await playwright.request.newContext({ baseURL: tokdyno.url });
});

test.afterAll(async () => {
  // What was restored belongs to the host, not to the dashboard that ends here.
  const living = api ? (await read("/api/v1/launches")).alive : [];
  for (const launch of living) await api.post(`/api/v1/launches/${launch.id}/stop`);
  for (const launch of living) await over(launch.id);
  await api?.dispose();
  await tokdyno?.stop();
  await production?.stop();
  await host?.stop();
  for (const log of Object.values(logs)) log.remove();
});

async function read(path) {
  const reply = await api.get(path);
  expect(reply.ok(), `${path}: ${await reply.text()}`).toBe(true);
  return reply.json();
}

async function over(launch) {
  const state = async () => (await read(`/api/v1/launches/${launch}`)).summary.state;
  await expect.poll(state, { timeout: LAUNCH_MS }).toMatch(/stopped|failed|lost/);
}

/** The built-in profile's own arguments and variables, with the stand-in as the program. */
async function standInFor(id, port) {
  const { builtins } = await read("/api/v1/profiles");
  const { spec } = builtins.find((builtin) => builtin.id === id);
  expect(spec.arguments.slice(0, 2)).toEqual(["-m", "sglang.launch_server"]);
  return {
    ...spec,
    program: BIN,
    arguments: [
      "simulate",
      "sglang",
      ...spec.arguments.slice(2),
      ...["--sim-speed", "2", "--sim-log", logs[id].path],
    ],
    environment: [...spec.environment, ["TOKDYNO_SIM_GPUS", host.gpus]],
    parameters: { ...spec.parameters, port },
  };
}

/** Presses *Launch & measure* and waits until all of it is done; gives the run. */
async function launchAndMeasure(page, profile, restored) {
  await page.goto(`${tokdyno.url}/profiles`);
  await hydrated(page);
  await page.getByRole("link", { name: `Launch & measure ${profile}` }).click();
  await page.waitForURL(/\/servers\/new\?/);
  await expect(page.getByRole("heading", { name: "Launch & measure" })).toBeVisible();
  await expect(page.getByLabel("Host", { exact: true })).toContainText("gpu box");
  await page.getByRole("radio", { name: /custom/ }).check();
  await page.getByLabel("Single-stream requests").fill(String(SIZES[0]));
  await page.getByRole("textbox", { name: "Concurrencies" }).fill(String(CONCURRENCY));
  await page.getByLabel("Output tokens per request").fill(String(OUTPUT_TOKENS));
  await page.getByLabel("Repeats", { exact: true }).fill("1");
  await page.getByLabel("Stop before, and restore afterwards").selectOption(String(restored));
  await page.getByLabel("Stop it after the measurement").check();
  await page.getByRole("button", { name: "Launch & measure" }).click();
  await page.waitForURL(/\/servers\/\d+$/);
  const launch = Number(page.url().split("/").pop());

  const steps = page.getByRole("region", { name: "Progress" }).getByRole("listitem");
  const step = (name) => steps.filter({ hasText: new RegExp(`^\\s*${name}`) });
  await expect(step("verify").getByText("done", { exact: true })).toBeVisible({ timeout: LAUNCH_MS });
  await expect(step("restore production").getByText("done", { exact: true })).toBeVisible({
    timeout: LAUNCH_MS,
  });
  await expect(step("measure").getByText("done", { exact: true })).toBeVisible();
  await expect(step("stop").last().getByText("done", { exact: true })).toBeVisible();
  const view = await read(`/api/v1/launches/${launch}`);
  expect(view.summary.state).toBe("stopped");
  expect(view.effective.stamp, JSON.stringify(view.effective)).toEqual({ stamp: "verified" });
  expect(existsSync(`/proc/${view.pid}`), "nothing of it is left").toBe(false);
  return { run: view.runs[0].id, restored: view.restores === restored };
}

/** Compares what was stored with what the stand-in says it sent. */
async function checkFigures(run, log) {
  const stages = stagesOf(log.read(), OUTPUT_TOKENS, SIZES);
  const result = await read(`/runs/${run}.json`);
  expect(result.endpoint.simulated).toBe(true);
  expect(result.stages.map((stage) => stage.completed)).toEqual(SIZES);
  const near = (value, truth, what) => {
    expect(value, what).toBeGreaterThan(truth * (1 - TOLERANCE));
    expect(value, what).toBeLessThan(truth * (1 + TOLERANCE));
  };
  near(result.stages[0].e2e_tps.p50, singleStream(stages[0]), "single stream");
  near(result.stages[1].output_tps, outputTps(stages[1]), "throughput");
  return { single: result.stages[0].e2e_tps.p50, throughput: result.stages[1].output_tps };
}

/** The launch under which production lives, and its process. */
async function productionNow() {
  const { alive } = await read("/api/v1/launches");
  const launch = alive.find(
    (launch) => launch.profile[1] === "production" && launch.state === "ready",
  );
  expect(launch, JSON.stringify(alive)).toBeDefined();
  return { launch: launch.id, pid: (await read(`/api/v1/launches/${launch.id}`)).pid };
}

async function modelAt(url) {
  const reply = await fetch(`${url}/v1/models`);
  return (await reply.json()).data[0].id;
}

test("launch and measure two profiles, and give the host back as it was", async ({ page }) => {
  test.setTimeout(360_000);

  // A host in three steps: ssh works, its name is typed, the connection is tested.
  await page.goto(`${tokdyno.url}/hosts`);
  await hydrated(page);
  await page.getByLabel("SSH destination").fill(host.destination);
  await page.getByLabel("Name", { exact: true }).fill("gpu box");
  await page.getByRole("button", { name: "Add host" }).click();
  await page.waitForURL(/\/hosts\/\d+$/);
  await hydrated(page);
  await page.getByRole("button", { name: "Test connection" }).click();
  await expect(page.getByText("RTX PRO 6000 (simulated)").first()).toBeVisible({ timeout: 30_000 });

  // Production runs there already.
  // (So may other tests' engines: the host is this machine.)
  const found = page
    .getByRole("region", { name: "Engines that run there now" })
    .getByRole("listitem")
    .filter({ hasText: `process ${production.pid} ` });
  await expect(found).toContainText("production-model", { timeout: 30_000 });
  await found.getByLabel("Profile to make of it").fill("production");
  await found.getByRole("button", { name: "Adopt" }).click();
  await page.waitForURL(/\/servers\/\d+$/, { timeout: 30_000 });
  await expect(page.getByText("ready", { exact: true }).first()).toBeVisible({ timeout: 30_000 });
  let before = await productionNow();
  expect(before.pid).toBe(production.pid);

  // The untuned profile as a script adds it, the tuned one as a person pastes it.
  const port = await freePort();
  const base = await standInFor("sglang-base", port);
  const added = await api.post("/api/v1/profiles", {
    data: { name: "sglang-base", spec: base, builtin: "sglang-base" },
  });
  expect(added.status(), await added.text()).toBe(201);
  const tuned = await standInFor("sglang-nccl-cd4", port);
  const values = {
    MODEL: tuned.parameters.model,
    PORT: port,
    TP: tuned.parameters.tensor_parallel,
    NAME: tuned.parameters.served_name || tuned.parameters.model,
  };
  const typed = (word) => `'${word.replace(/\{(\w+)\}/g, (_, name) => values[name])}'`;
  await page.goto(`${tokdyno.url}/profiles/new`);
  await hydrated(page);
  await page
    .getByLabel("The command that starts your server")
    .fill(
      [
        ...tuned.environment.map(([name, value]) => `export ${name}=${typed(value)}`),
        [tuned.program, ...tuned.arguments.map(typed)].join(" \\\n  "),
      ].join("\n"),
    );
  await page.getByRole("button", { name: "Make a profile of it" }).click();
  await page.getByLabel("Name of the profile").fill("sglang-nccl-cd4");
  await page.getByRole("button", { name: "Save profile" }).click();
  await page.waitForURL(/\/profiles\/sglang-nccl-cd4$/);
  // The flag that does nothing in this version says so before it is measured.
  await expect(page.getByText("no effect", { exact: true }).first()).toBeVisible();
  await expect(page.getByText(/nothing in 0\.3\.6 to 0\.5\.23/).first()).toBeVisible();

  const figures = {};
  for (const profile of ["sglang-base", "sglang-nccl-cd4"]) {
    const { run } = await launchAndMeasure(page, profile, before.launch);
    figures[profile] = { run, ...(await checkFigures(run, logs[profile])) };
    const after = await productionNow();
    expect(after.launch).not.toBe(before.launch);
    expect(after.pid, "a new process").not.toBe(before.pid);
    expect(await modelAt(production.url)).toBe("production-model");
    before = after;
  }
  // The founding notes' gain: 63.6 to 90.0 tok/s for one user.
  expect(figures["sglang-nccl-cd4"].single / figures["sglang-base"].single).toBeGreaterThan(1.2);

  await page.goto(`${tokdyno.url}/?simulated=true`);
  await hydrated(page);
  for (const [profile, { single }] of Object.entries(figures)) {
    const row = page.getByRole("row").filter({ hasText: profile });
    await expect(row.first()).toContainText("simulated");
    await expect(row.first()).toContainText("verified");
    await expect(row.first()).toContainText(figure(single));
  }

  await page.goto(`${tokdyno.url}/runs/${figures["sglang-nccl-cd4"].run}`);
  await hydrated(page);
  await expect(page.getByText("verified", { exact: true }).first()).toBeVisible();
  await expect(page.getByText(/on the host itself/).first()).toBeVisible();
  await expect(page.getByText(/--num-continuous-decode-steps/).first()).toBeVisible();
});
