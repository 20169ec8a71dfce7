import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
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

/** Files of the first page after sign-in. The chart library is loaded afterwards. */
const MAX_FIRST_LOAD_BYTES = 150_000;

it("the console loads at most 150 kB for the overview, as gzip, in its own typeface", async () => {
  await using opened = await console.open("/", { key: null });
  const { page } = opened;
  await signIn(page);
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  expect(
    await page.evaluate("document.fonts.ready.then(() => document.fonts.check('13px \"Geist Variable\"'))"),
  ).toBe(true);
  await page.waitForLoadState("networkidle");
  const names = await page.evaluate(
    "performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)",
  );
  const files = [names]
    .flat()
    .map(String)
    .filter((path) => /^\/console\/assets\/.*\.(js|css|woff2)$/.test(path));
  const bytes = files.map((path) => gzipSync(readFileSync(join(DIST, path.replace("/console/", "")))).length);
  expect(files.filter((path) => path.endsWith(".woff2"))).toHaveLength(1);
  const total = bytes.reduce((sum, one) => sum + one, 0);
  expect([total, total <= MAX_FIRST_LOAD_BYTES]).toEqual([total, true]);
});

describe("the sign-in page of the console", () => {
  it("leads to the address opened first, and stores the access token for reloads, but never the API key", async () => {
    await using opened = await console.open("/apps?from=a-link", { key: null });
    const { page, context } = opened;
    await signIn(page);
    await page.getByRole("heading", { name: "Apps", level: 1 }).waitFor();
    expect(page.url()).toBe(`${console.gateway.origin}/console/apps?from=a-link`);
    const stored = await page.evaluate("JSON.stringify({ ...sessionStorage })");
    expect(stored).toContain("eyJ");
    const others = await page.evaluate("JSON.stringify([{ ...localStorage }, document.cookie])");
    expect(others).not.toContain("eyJ");
    expect(`${stored}${others}`).not.toMatch(/ik_/);
    expect(`${stored}${others}`).not.toContain(API_KEY);
    expect(await context.cookies()).toEqual([]);
    await page.reload();
    await page.getByRole("heading", { name: "Apps", level: 1 }).waitFor();
    expect(page.url()).toBe(`${console.gateway.origin}/console/apps?from=a-link`);
  });

  it("is skipped in a new tab while another tab is signed in, and appears in all tabs after a sign-out", async () => {
    await using opened = await console.open("/apps", { key: null });
    const { page, context } = opened;
    const waiting = await context.newPage();
    await waiting.goto(`${console.gateway.origin}/console/audit`);
    await waiting.getByLabel("API key").waitFor();
    await signIn(page);
    // A tab that already shows the form takes over the sign-in.
    await waiting.getByRole("heading", { name: "Audit", level: 1 }).waitFor();
    const link = await context.newPage();
    await link.goto(`${console.gateway.origin}/console/connections`);
    await link.getByRole("heading", { name: "Connections", level: 1 }).waitFor();

    // The storage of a tab that the browser restores after the sign-out.
    const stored = await link.evaluate("sessionStorage.getItem('inlet.session')");
    await link.getByRole("button", { name: "Sign out" }).click();
    for (const tab of [page, waiting, link]) await tab.getByLabel("API key").waitFor();
    await link.evaluate(`sessionStorage.setItem('inlet.session', ${JSON.stringify(stored)})`);
    await link.reload();
    await link.getByLabel("API key").waitFor();
    expect(await link.evaluate("sessionStorage.getItem('inlet.session')")).toBeNull();

    // A message that another tab sent before the sign-out.
    await link.evaluate(`new Promise((received) => {
      new BroadcastChannel("inlet.session").onmessage = received;
      const session = ${stored};
      new BroadcastChannel("inlet.session").postMessage({ is: "session", session });
    })`);
    for (const tab of [page, waiting, link]) {
      await tab.getByLabel("API key").waitFor();
      expect(await tab.evaluate("sessionStorage.getItem('inlet.session')")).toBeNull();
    }

    const elsewhere = await console.browser.newContext();
    const other = await elsewhere.newPage();
    await signIn(page);
    await other.goto(`${console.gateway.origin}/console/apps`);
    await other.getByLabel("API key").waitFor();
    await elsewhere.close();
  });

  it("is skipped after the token was renewed, and a new sign-in replaces an earlier one in all tabs", async () => {
    const { key } = await keyWith("apps.read");
    await using opened = await console.open("/apps", { key: null });
    const { page, context } = opened;
    await page.clock.install();
    await signIn(page);
    await page.getByRole("heading", { name: "Apps", level: 1 }).waitFor();
    const tokenOf = () =>
      page.evaluate("JSON.parse(sessionStorage.getItem('inlet.session')).token.expiresAtMs");
    const first = Number(await tokenOf());
    const renewal = page.waitForResponse((response) => response.url().endsWith("/v1/auth/tokens"));
    await page.clock.fastForward("13:05");
    expect((await renewal).request().headers().authorization).toMatch(/^Bearer ey/);
    await expect.poll(async () => Number(await tokenOf())).toBeGreaterThan(first);

    const response = await fetch(`${console.gateway.origin}/v1/auth/tokens`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
    });
    const { accessToken } = (await response.json()) as { accessToken: string };
    const next = await context.newPage();
    await next.goto(`${console.gateway.origin}/console/apps`);
    await next.locator("#nav").getByRole("link", { name: "Audit", exact: true }).waitFor();
    const later = Date.now() + 3_600_000;
    const session = { id: "2", signedInAtMs: later, token: { text: accessToken, expiresAtMs: later } };
    const sender = await context.newPage();
    await sender.goto(`${console.gateway.origin}/console/apps`);
    await sender.evaluate(
      `new BroadcastChannel('inlet.session').postMessage({ is: 'session', session: ${JSON.stringify(session)} })`,
    );
    for (const tab of [page, next]) {
      const link = (name: string) => tab.locator("#nav").getByRole("link", { name, exact: true });
      await link("Audit").waitFor({ state: "detached" });
      await link("Apps").waitFor();
    }
  });

  it("shows why an API key was rejected, with the error code and the request id", async () => {
    await using opened = await console.open("/", { key: null });
    const { page, complaints } = opened;
    await page.getByLabel("API key").fill("ik_nobody");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    const alert = page.getByRole("alert");
    await alert.waitFor();
    await expect.poll(() => alert.textContent()).toMatch(/bearer token is unknown.*unauthenticated.*request/);
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
    // On a busy machine, the second key can come too late, or both before the page handles keys.
    const goTo = (key: string, title: string) =>
      expect
        .poll(async () => {
          await page.keyboard.press("g");
          await page.keyboard.press(key);
          return page.locator("#nav [aria-current=page]").allTextContents();
        })
        .toEqual([title]);
    await goTo("a", "Apps");
    await page.getByRole("heading", { name: "Apps", level: 1 }).waitFor();
    await goTo("o", "Overview");
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
    await expect.poll(() => cell.textContent()).toContain("\\u202Egnp.exe\\u200B");
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
    await page.locator(`[data-index="${last}"]:focus:not(.waiting)`).waitFor();
    expect(await page.locator("[data-index]").count()).toBeLessThanOrEqual(200);
  });

  it("shows the exact time in the user's time zone and in UTC in the tooltip", async () => {
    await using opened = await console.open("/audit", { timeZone: "Pacific/Auckland" });
    // Reads both attributes at once, because a live list can insert a row above this one.
    const { moment, title } = await opened.page
      .locator("time")
      .first()
      .evaluate((time) => ({ moment: time.getAttribute("datetime"), title: time.getAttribute("title") }));
    const utc = new Date(moment ?? "");
    const [local, exact] = (title ?? "").split("\n");
    expect(exact).toBe(utc.toISOString());
    const hour = new Intl.DateTimeFormat("en-US", {
      hour: "2-digit",
      hourCycle: "h23",
      timeZone: "Pacific/Auckland",
    });
    expect(local).toContain(`${hour.format(utc)}:`);
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
