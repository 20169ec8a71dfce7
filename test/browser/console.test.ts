import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { channelOf, installApp } from "../support/channels.ts";
import { signIn, startTestConsole, type TestConsole } from "../support/console.ts";
import { API_KEY } from "../support/gateway-process.ts";

const DIST = join(import.meta.dirname, "..", "..", "src", "console", "dist");

let console: TestConsole;
beforeAll(async () => {
  console = await startTestConsole();
});
afterAll(() => console?.[Symbol.asyncDispose]());

const keyWith = async (...permissions: string[]): Promise<{ readonly id: string; readonly key: string }> =>
  console.gateway.api("POST", "/iam/api-keys", { name: "narrow", permissions });

describe("the sign-in page of the console", () => {
  it("leads to the address opened first, and keeps the API key and the token only in memory", async () => {
    await using opened = await console.open("/apps?from=a-link", { key: null });
    const { page, context } = opened;
    await signIn(page);
    await page.getByRole("heading", { name: "Apps", level: 1 }).waitFor();
    expect(page.url()).toBe(`${console.gateway.origin}/console/apps?from=a-link`);
    const kept = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])",
    );
    expect(kept).not.toMatch(/ik_|eyJ/);
    expect(kept).not.toContain(API_KEY);
    expect(await context.cookies()).toEqual([]);
    await page.reload();
    await page.getByLabel("API key").waitFor();
  });

  it("shows why an API key was rejected, with the error code and the request id", async () => {
    await using opened = await console.open("/", { key: null });
    const { page, complaints } = opened;
    await page.getByLabel("API key").fill("ik_nobody");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    const alert = page.getByRole("alert");
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(/bearer token is unknown.*unauthenticated.*request/);
    // The browser logs each failed request to its console.
    expect(complaints.splice(0)).toEqual([expect.stringContaining("401")]);
  });

  it("appears again after the API key was revoked or the user signed out", async () => {
    const { id, key } = await keyWith("apps.read");
    await using opened = await console.open("/apps", { key });
    const { page, complaints } = opened;
    const link = (name: string) => page.locator("#nav").getByRole("link", { name, exact: true });
    await link("Apps").waitFor();
    await console.gateway.api("DELETE", `/iam/api-keys/${id}`);
    const signedOut = page.getByText("You were signed out");
    // Each view sends a request until the API rejects the key. The links are gone after that, so clicks may fail.
    await expect
      .poll(async () => {
        for (const name of ["Overview", "Apps"])
          await link(name)
            .click({ timeout: 2_000 })
            .catch(() => {});
        return signedOut.count();
      })
      .toBe(1);
    expect(complaints.splice(0).every((one) => /401/.test(one))).toBe(true);
    await signIn(page);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("API key").waitFor();
  });

  it("leads to a console with only those views that the API key has permissions for", async () => {
    const { key } = await keyWith("audit.read");
    await using opened = await console.open("/apps", { key });
    const { page } = opened;
    await page.getByText("This page needs the permission apps.read").waitFor();
    expect(await page.getByRole("link", { name: "Apps", exact: true }).count()).toBe(0);
  });
});

describe("the console", () => {
  it("opens a view after the key g and a letter, lists all shortcuts after ?, and closes that list after Escape", async () => {
    await using opened = await console.open();
    const { page } = opened;
    await page.keyboard.press("g");
    await page.keyboard.press("a");
    await page.getByRole("heading", { name: "Apps", level: 1 }).waitFor();
    await page.locator("#nav [aria-current=page]", { hasText: "Apps" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("o");
    await page.locator("#nav [aria-current=page]", { hasText: "Overview" }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  it("shows markup in untrusted data as plain text, and escapes invisible characters", async () => {
    const hostile =
      '<img src=x onerror="window.hit=1"><script>window.hit=1</script>\u202Egnp.exe\u200B\u0007';
    const app = await installApp(console.gateway, [{ uid: "a", kind: "webhook", events: [{ type: "t" }] }]);
    await console.gateway.api("PUT", `/apps/${app.id}`, { title: hostile.replace("\u0007", "") });
    await using opened = await console.open("/apps");
    const { page } = opened;
    const cell = page.getByRole("gridcell").filter({ hasText: "onerror" });
    await cell.waitFor();
    expect(await cell.textContent()).toContain("\\u202Egnp.exe\\u200B");
    expect(await page.evaluate("'hit' in window")).toBe(false);
    expect(channelOf(app).uid).toBe("a");
  });

  it("renders at most 200 rows of a long list and scrolls to its end with the End key", async () => {
    const { id: blueprintId } = await console.gateway.api<{ id: string }>("POST", "/blueprints", {
      title: "many",
      channels: [],
    });
    await Promise.all(
      Array.from({ length: 230 }, () => console.gateway.api("POST", "/apps/install", { blueprintId })),
    );
    await using opened = await console.open("/apps");
    const { page } = opened;
    const grid = page.getByRole("grid", { name: "Apps" });
    await expect.poll(async () => Number(await grid.getAttribute("aria-rowcount"))).toBeGreaterThan(230);
    await grid.locator('[data-index="0"]').focus();
    await page.keyboard.press("End");
    const last = Number(await grid.getAttribute("aria-rowcount")) - 2;
    await page.locator(`[data-index="${last}"]:focus time`).waitFor();
    expect(await page.locator("[data-index]").count()).toBeLessThanOrEqual(200);
  });

  it("shows times in the user's time zone, with UTC in the tooltip", async () => {
    await using opened = await console.open("/apps", { timeZone: "Pacific/Auckland" });
    const time = opened.page.locator("time").first();
    const utc = new Date((await time.getAttribute("datetime")) ?? "");
    expect(await time.getAttribute("title")).toContain(utc.toISOString());
    const hour = new Intl.DateTimeFormat("en-US", {
      hour: "2-digit",
      hourCycle: "h23",
      timeZone: "Pacific/Auckland",
    });
    expect(await time.textContent()).toContain(`${hour.format(utc)}:`);
  });
});

it("the console loads at most 120 kB of compressed files before it first renders", () => {
  const page = readFileSync(join(DIST, "index.html"), "utf8");
  const named = [...page.matchAll(/(?:src|href)="\/console\/(assets\/[^"]+)"/g)].map(([, name = ""]) => name);
  expect(named.length).toBeGreaterThan(2);
  const bytes = named.map(
    (name) => readFileSync(join(DIST, name.endsWith(".svg") ? name : `${name}.gz`)).length,
  );
  expect(bytes.reduce((sum, one) => sum + one, page.length)).toBeLessThanOrEqual(120_000);
});

it("the console renders after three round trips: one for the page, one for its assets, one for its settings", async () => {
  await using opened = await console.open("/", { key: null });
  await opened.page.getByLabel("API key").waitFor();
  const asked = (await opened.page.evaluate(
    "performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)",
  )) as readonly string[];
  expect(asked.filter((path) => !/^\/console\/(assets\/|settings\.json$)/.test(path))).toEqual([]);
  await expect
    .poll(() => opened.page.evaluate("performance.getEntriesByName('first-contentful-paint').length"))
    .toBe(1);
});
