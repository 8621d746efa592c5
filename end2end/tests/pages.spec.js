// Every page, loaded hard: dark and light, wide and narrow, with nothing in the
// console, nothing wider than the screen and no accessibility fault.
import AxeBuilder from "@axe-core/playwright";

import { startTokdyno } from "../support/program.js";
import { expect, hydrated, test } from "../support/test.js";

const SIZES = [
  { width: 1440, height: 900 },
  { width: 768, height: 1024 },
  { width: 360, height: 740 },
];

let tokdyno, frozen;

test.beforeAll(async ({ playwright }) => {
  tokdyno = await startTokdyno();
  const api = await playwright.request.newContext({ baseURL: tokdyno.url });
  const reply = await api.post("/api/fn/share", {
    headers: { Origin: tokdyno.url },
    form: { "query[runs][0]": 1, "query[runs][1]": 2, title: "vLLM or SGLang?" },
  });
  expect(reply.ok(), await reply.text()).toBe(true);
  frozen = await reply.json();
});

test.afterAll(async () => tokdyno?.stop());

const pages = () => ({
  board: "/",
  runs: "/runs",
  run: "/runs/3",
  "new measurement": "/runs/new",
  compare: "/compare",
  comparison: "/compare?runs=1,2,3",
  frozen: `/c/${frozen}`,
});

for (const scheme of ["light", "dark"]) {
  for (const name of ["board", "runs", "run", "new measurement", "compare", "comparison", "frozen"]) {
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
