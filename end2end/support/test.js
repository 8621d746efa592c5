// Playwright's test, with a page that fails the test on any error in the console.
import { test as base, expect } from "@playwright/test";

/** Collects what a page must never say. */
export function watch(page, allow = []) {
  const errors = [];
  const allowed = (text) => allow.some((pattern) => pattern.test(text));
  page.on("console", (message) => {
    const text = `${message.text()} (${message.location().url})`;
    if (message.type() === "error" && !allowed(text)) errors.push(text);
  });
  page.on("pageerror", (error) => {
    if (!allowed(error.message)) errors.push(error.message);
  });
  return errors;
}

export const test = base.extend({
  // What a test expects to go wrong: `test.use({ allowErrors: [/404/] })`.
  allowErrors: [[], { option: true }],
  page: async ({ page, allowErrors }, use) => {
    const errors = watch(page, allowErrors);
    await use(page);
    expect(errors, "errors in the browser's console").toEqual([]);
  },
});

/** Waits until WASM has taken the page over. */
export async function hydrated(page) {
  await page.waitForFunction(() => document.documentElement.dataset.live !== undefined, undefined, {
    timeout: 20_000,
  });
}

export { expect };
