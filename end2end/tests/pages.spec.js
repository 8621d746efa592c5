// Every page, loaded hard: dark and light, wide and narrow, with nothing in the
// console, nothing wider than the screen and no accessibility fault.
import { spawnSync } from "node:child_process";

import AxeBuilder from "@axe-core/playwright";

import { BIN, startTokdyno } from "../support/program.js";
import { expect, hydrated, test } from "../support/test.js";

const SIZES = [
  { width: 1440, height: 900 },
  { width: 768, height: 1024 },
  { width: 360, height: 740 },
];

let tokdyno, frozen, launch;

test.beforeAll(async ({ playwright }) => {
  tokdyno = await startTokdyno();
  const api = await playwright.request.newContext({ baseURL: tokdyno.url });
  const reply = await api.post("/api/fn/share", {
    headers: { Origin: tokdyno.url },
    form: { "query[runs][0]": 1, "query[runs][1]": 2, title: "vLLM or SGLang?" },
  });
  expect(reply.ok(), await reply.text()).toBe(true);
  frozen = await reply.json();
  launch = await failedLaunch(api);
  await api.dispose();
});

/** A host, a profile, and a launch that ends at once: its program is not there. */
async function failedLaunch(api) {
  const post = async (path, data) => {
    const reply = await api.post(`/api/v1/${path}`, { data });
    expect(reply.status(), `${path}: ${await reply.text()}`).toBe(201);
    return reply.json();
  };
  const { host } = await post("hosts", { name: "this machine", local: true });
  expect((await api.post(`/api/v1/hosts/${host}/check`)).ok()).toBe(true);
  const { name } = await post("profiles", { builtin: "sglang-nccl-cd4" });
  const { launch } = await post("launches", { profile: name, host });
  const state = async () => (await (await api.get(`/api/v1/launches/${launch}`)).json()).summary.state;
  await expect.poll(state, { timeout: 60_000 }).toBe("failed");
  return launch;
}

test.afterAll(async () => tokdyno?.stop());

const pages = () => ({
  board: "/",
  runs: "/runs",
  run: "/runs/3",
  "new measurement": "/runs/new",
  compare: "/compare",
  comparison: "/compare?runs=1,2,3",
  frozen: `/c/${frozen}`,
  servers: "/servers",
  "new launch": "/servers/new?profile=sglang-nccl-cd4&measure=1",
  launch: `/servers/${launch}`,
  profiles: "/profiles",
  "new profile": "/profiles/new",
  "profile from nothing": "/profiles/new?blank=1",
  profile: "/profiles/sglang-nccl-cd4",
  hosts: "/hosts",
  host: "/hosts/1",
  experiments: "/experiments",
  "new experiment": "/experiments/new?design=full_grid&NCCL_PROTO=&NCCL_ALGO=",
  ablation: "/experiments/new?to=sglang-nccl-cd4",
  audit: "/audit",
  "sign-in": "/sign-in",
});
const NAMES = [
  ...["board", "runs", "run", "new measurement", "compare", "comparison", "frozen"],
  ...["servers", "new launch", "launch", "profiles", "new profile", "profile from nothing"],
  ...["profile", "hosts", "host", "experiments", "new experiment", "ablation", "audit", "sign-in"],
];

for (const scheme of ["light", "dark"]) {
  for (const name of NAMES) {
    test(`${name}, ${scheme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme: scheme });
      for (const size of SIZES) {
        await page.setViewportSize(size);
        const response = await page.goto(tokdyno.url + pages()[name]);
        expect(response.status()).toBe(200);
        await hydrated(page);
        await expect(page.locator("h1")).toHaveCount(1);
        const overflow = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        expect(overflow, `wider than ${size.width} px`).toBeLessThanOrEqual(0);
      }
      const faults = (await new AxeBuilder({ page }).analyze()).violations;
      expect(
        faults.map((fault) => `${fault.id}: ${fault.nodes.map((node) => node.target).join(", ")}`),
      ).toEqual([]);
    });
  }
}

test("pages can be read without WASM", async ({ browser }) => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(tokdyno.url);
  await expect(page.getByText("Best for one user")).toBeVisible();
  await expect(page.getByText("2,370").first()).toBeVisible();
  await page.goto(`${tokdyno.url}/runs`);
  await page.getByLabel("Text").fill("EAGLE");
  await page.getByRole("button", { name: "Show" }).click();
  await expect(page).toHaveURL(/text=EAGLE/);
  await expect(page.getByRole("link", { name: /vLLM baseline/ })).toHaveCount(0);
  await expect(page.getByRole("link", { name: /AQ-MedAI/ })).toBeVisible();
  await context.close();
});

test("the theme is chosen, kept, and applied before anything is painted", async ({ page }) => {
  await page.goto(tokdyno.url);
  await hydrated(page);
  const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await background();
  await page.getByRole("button", { name: /dark/i }).click();
  await expect.poll(background).not.toBe(light);
  await page.reload();
  expect(await background()).not.toBe(light);
});

test("the keyboard reaches the content and the navigation", async ({ page }) => {
  await page.goto(tokdyno.url);
  await hydrated(page);
  await page.keyboard.press("Tab");
  await expect(page.locator(":focus")).toHaveText(/skip/i);
  await page.keyboard.press("Enter");
  expect(new URL(page.url()).hash).not.toBe("");
});

test.describe("from elsewhere", () => {
  // As a proxy on this machine passes a request on.
  test.use({
    extraHTTPHeaders: { "X-Forwarded-For": "203.0.113.7" },
    allowErrors: [/status of 40[13]/],
  });

  test("one looks, and signs in to launch", async ({ page }) => {
    await page.goto(`${tokdyno.url}/profiles`);
    await hydrated(page);
    await expect(page.getByRole("link", { name: /Launch & measure/ })).toHaveCount(0);
    await expect(page.locator("main").getByRole("link", { name: /sign in/i }).first()).toBeVisible();
    await page.goto(`${tokdyno.url}/sign-in`);
    await expect(page.locator("main")).toContainText("tokdyno set-password");

    const set = spawnSync(BIN, ["set-password", "--stdin", "--data-dir", tokdyno.dataDir], {
      input: "correct horse battery\n",
      env: { ...process.env, DATABASE_URL: "" },
    });
    expect(set.status, String(set.stderr)).toBe(0);
    await page.goto(`${tokdyno.url}/sign-in?next=/profiles`);
    await page.getByLabel("Operator's password").fill("something else");
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("alert")).toContainText("not the operator's password");
    const faults = (await new AxeBuilder({ page }).analyze()).violations;
    expect(faults.map((fault) => fault.id)).toEqual([]);
    await page.getByLabel("Operator's password").fill("correct horse battery");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(/\/profiles$/);
    await hydrated(page);
    await expect(page.getByRole("link", { name: /Launch & measure/ }).first()).toBeVisible();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(`${tokdyno.url}/`);
    await page.goto(`${tokdyno.url}/profiles`);
    await expect(page.getByRole("link", { name: /Launch & measure/ })).toHaveCount(0);
  });
});
