// Whatever is typed wrongly gets a plain sentence with cause and remedy.
import { createServer } from "node:http";

import { freePort, startStandIn, startTokdyno } from "../support/program.js";
import { expect, hydrated, test } from "../support/test.js";

let tokdyno, locked, page404;

test.beforeAll(async () => {
  page404 = createServer((_, reply) => {
    reply.writeHead(404, { "content-type": "text/html" });
    reply.end("<h1>not here</h1>");
  });
  await new Promise((done) => page404.listen(0, "127.0.0.1", done));
  [tokdyno, locked] = await Promise.all([
    startTokdyno(),
    startStandIn("vllm", ["m", "--api-key", "sesame"]),
  ]);
});

test.afterAll(async () => {
  page404?.close();
  await Promise.all([tokdyno?.stop(), locked?.stop()]);
});

async function probe(page, address) {
  await page.goto(`${tokdyno.url}/runs/new`);
  await hydrated(page);
  await page.getByLabel("Address").fill(address);
  return page.locator("form");
}

test("an address where nobody listens", async ({ page }) => {
  const form = await probe(page, `http://127.0.0.1:${await freePort()}`);
  await expect(form).toContainText(/refused/i);
});

test("an address that is none", async ({ page }) => {
  const form = await probe(page, "ftp://gpu1");
  await expect(form).toContainText("http:// or https://");
});

test("a server that is no engine", async ({ page }) => {
  const form = await probe(page, `http://127.0.0.1:${page404.address().port}`);
  await expect(form).toContainText("OpenAI");
});

test("a server that wants a key, without and with it", async ({ page }) => {
  const form = await probe(page, locked.url);
  await expect(form).toContainText(/key/i);
  await expect(form).toContainText("401");
  await page.getByLabel("Key, if the server asks for one").fill("sesame");
  await page.getByLabel("Key, if the server asks for one").blur();
  await expect(form).toContainText(/vLLM 0\.\d/);
});

test("concurrencies that cannot be measured", async ({ page }) => {
  await page.goto(`${tokdyno.url}/runs/new`);
  await hydrated(page);
  await page.getByRole("radio", { name: /custom/ }).check();
  for (const [typed, said] of [
    ["0", "A concurrency of 0 cannot be measured"],
    ["100000", "A concurrency of 100000 cannot be measured"],
    ["1, two", "is not a list of concurrencies"],
    ["8, 8", "asked for twice"],
  ]) {
    await page.getByRole("textbox", { name: "Concurrencies" }).fill(typed);
    await expect(page.getByText(said).first()).toBeVisible();
  }
});

test.describe("what is not there", () => {
  test.use({ allowErrors: [/status of 404/] });

  for (const path of [
    ...["/runs/999999", "/runs/abc", "/experiments/999999", "/experiments/abc"],
    ...["/nowhere", `/c/${"0".repeat(32)}`, "/c/xyz"],
  ]) {
    test(path, async ({ page }) => {
      const response = await page.goto(tokdyno.url + path);
      expect(response.status()).toBe(404);
      await hydrated(page);
      await expect(page.locator("main")).toContainText(/\./);
      await expect(page.locator("main").getByRole("link").first()).toBeVisible();
    });
  }
});

test.describe("result files", () => {
  const drop = async (page, name, content) => {
    await page.goto(tokdyno.url);
    await hydrated(page);
    await page
      .locator('input[type="file"]')
      .first()
      .setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(content) });
  };

  test.use({ allowErrors: [/status of 4\d\d/] });

  for (const [what, content, said] of [
    ["no JSON", "hello", "not JSON"],
    ["another version", '{"schema_version": 99, "tool": "tokdyno"}', "schema version 99"],
    [
      "another tool",
      '{"output_throughput": 1, "total_token_throughput": 2}',
      "vllm bench serve",
    ],
  ]) {
    test(what, async ({ page }) => {
      await drop(page, "result.json", content);
      await expect(page.getByText(said).first()).toBeVisible();
    });
  }
});

test("a page elsewhere can change nothing", async ({ page }) => {
  const reply = await page.request.post(`${tokdyno.url}/api/fn/load_founding`, {
    headers: { Origin: "http://evil.example" },
    data: {},
  });
  expect(reply.status()).toBe(403);
  const host = await page.request.get(tokdyno.url, { headers: { Host: "evil.example" } });
  expect(host.status()).toBe(421);
});

test("a title with mark-up in it stays a title", async ({ page }) => {
  const title = 'T</title><meta http-equiv="refresh" content="0;url=/nowhere"><script>x()</script>';
  const reply = await page.request.post(`${tokdyno.url}/api/fn/share`, {
    headers: { Origin: tokdyno.url },
    form: { "query[runs][0]": 1, "query[runs][1]": 2, title },
  });
  expect(reply.ok(), await reply.text()).toBe(true);
  await page.goto(`${tokdyno.url}/c/${await reply.json()}`);
  await hydrated(page);
  expect(await page.title()).toBe(`${title} · Tokdyno`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(title);
  await expect(page.locator("meta[http-equiv]")).toHaveCount(0);
});
