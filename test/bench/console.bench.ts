/**
 * Measures the responsiveness of the console on loopback.
 *
 * Prints the longest tasks of its main thread while the live tail shows 10,000 events, and while a list of 100,000 is scrolled from end
 * to end. Also prints the time to the first contentful paint, and the times of interactions with this list and with 1,000 apps.
 *
 * usage: npm run bench:console [-- --tailed 10000 --listed 100000 --apps 1000]
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Page } from "playwright-core";
import { channelOf, installApp } from "../support/channels.ts";
import { launchChromium } from "../support/chromium.ts";
import { buildConsole, signIn } from "../support/console.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { readFlags } from "./flags.ts";
import { startBenchRedis } from "./redis.ts";

const GOAL_TASK_MS = 100;
const GOAL_PAINT_MS = 1_000;
const {
  tailed: TAILED,
  listed: LISTED,
  apps: APPS,
} = readFlags({ tailed: 10_000, listed: 100_000, apps: 1_000 });
/** Number of items per delivery. */
const AT_ONCE = 500;
const SCREENS_A_SECOND = 20;

await buildConsole();
await using redis = await startBenchRedis();
await using gateway = await startGatewayProcess({
  INLET_DATA_DIR: `${redis.dir}/data`,
  REDIS_URL: `unix://${redis.socket}`,
  INLET_LOG_LEVEL: "warn",
});
const app = await installApp(gateway, [
  {
    uid: "hooks",
    kind: "webhook",
    config: { itemsPath: "$.items[*]" },
    events: [{ type: "order.created", idPath: "$.id" }],
  },
]);
const { id: blueprintId } = await gateway.api<{ id: string }>("POST", "/blueprints", {
  title: "Shop",
  channels: [],
});
for (let n = 1; n < APPS; n++)
  await gateway.api("POST", "/apps/install", { blueprintId, uid: `shop-${n}`, title: `Shop ${n}` });
const hookUrl = channelOf(app).url ?? "";
let made = 0;

/** Sends a delivery. The events are published when it resolves. */
async function send(count: number): Promise<void> {
  for (const until = made + count; made < until; ) {
    const items = Array.from({ length: Math.min(AT_ONCE, until - made) }, () => ({
      id: `order-${made++}`,
      customer: { name: "A. Person", country: "NZ" },
      total: made % 1_000,
      lines: [{ sku: "a-1", quantity: 2 }],
    }));
    const response = await fetch(hookUrl, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ items }),
    });
    if (!response.ok) throw new Error(`delivery failed: ${response.status} ${await response.text()}`);
  }
}

const browser = await launchChromium();
const misses: string[] = [];
try {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.setDefaultTimeout(300_000);
  // Plain JavaScript, because it runs in the page.
  await page.addInitScript(
    "window.tasks = []; new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) window.tasks.push(duration); }).observe({ type: 'longtask' });",
  );
  await page.goto(`${gateway.origin}/console/apps/${app.id}/tail`);
  await page.getByLabel("API key").waitFor();
  const paintMs = Number(
    await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"),
  );
  console.log(`first contentful paint after ${paintMs.toFixed(0)} ms (goal ${GOAL_PAINT_MS})`);
  if (paintMs >= GOAL_PAINT_MS) misses.push("first contentful paint");

  await signIn(page);
  await page.locator(".badge", { hasText: "Live" }).waitFor();
  await takeTasks(page);
  await send(TAILED);
  await page.getByText(`of ${TAILED.toLocaleString("en-US")} events`).waitFor();
  await report(page, `${TAILED} events through the live tail`);

  await send(LISTED - TAILED);
  await page.locator("#nav").getByRole("link", { name: "Events", exact: true }).click();
  await page.locator('[data-index="0"] time').waitFor();
  await takeTasks(page);
  const screens = Number(
    await page.evaluate(`(async () => {
      const box = document.querySelector(".table");
      let screens = 0;
      while (box.scrollTop + box.clientHeight < box.scrollHeight - 1) {
        box.scrollTop += 10 * box.clientHeight;
        screens++;
        await new Promise((done) => setTimeout(done, ${1_000 / SCREENS_A_SECOND}));
      }
      return screens;
    })()`),
  );
  await page.locator(`[data-index="${LISTED - 1}"] time`).waitFor();
  await report(page, `${LISTED} events scrolled end to end, ${screens} steps`);

  await page.reload();
  await page.locator('[data-index="0"]').focus();
  await time(page, `the oldest of ${LISTED} events after End`, async () => {
    await page.keyboard.press("End");
    await page.locator(`[data-index="${LISTED - 1}"] time`).waitFor();
  });
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await time(page, `${LISTED} events searched by a field`, async () => {
    await page.getByLabel("Field").fill("total = -1");
    // The search pauses after 100,000 events. The gateway's own app may have published one more.
    const all = page.getByText("0 found. Scanned all");
    const further = page.getByRole("button", { name: "Search further" });
    await all.or(further).waitFor();
    if (await further.isVisible()) await further.click();
    await all.waitFor();
  });

  await page.keyboard.press("Control+k");
  await time(page, `one of ${APPS} apps found in the palette`, async () => {
    await page.getByRole("combobox", { name: "Id, app or page" }).fill(`shop-${APPS - 1}`);
    await page.getByRole("option").filter({ hasText: "App" }).waitFor();
  });
  await page.keyboard.press("Escape");
  await page.locator("#nav").getByRole("link", { name: "Apps", exact: true }).click();
  await page.locator('[data-index="0"]:not(.waiting)').focus();
  const apps = Number(await page.getByRole("grid", { name: "Apps" }).getAttribute("aria-rowcount")) - 1;
  await time(page, `the last of ${apps} apps after End`, async () => {
    await page.keyboard.press("End");
    await page.locator(`[data-index="${apps - 1}"]:not(.waiting)`).waitFor();
  });
  await page.keyboard.press(".");
  await time(page, `one of ${apps} apps found in the switcher`, async () => {
    await page.keyboard.type(`shop-${APPS - 1}`);
    await page
      .getByRole("dialog")
      .getByRole("row")
      .filter({ hasText: `shop-${APPS - 1}` })
      .waitFor();
  });
} finally {
  await browser.close();
}
if (misses.length > 0) {
  console.log(`MISSED: ${misses.join("; ")}`);
  process.exitCode = 1;
}

async function takeTasks(page: Page): Promise<readonly number[]> {
  // The observer is notified only after the end of a task.
  await delay(1_000);
  return (await page.evaluate("window.tasks.splice(0)")) as readonly number[];
}

/** Prints how long an interaction takes, and its tasks. */
async function time(page: Page, what: string, interact: () => Promise<void>): Promise<void> {
  await takeTasks(page);
  const startMs = performance.now();
  await interact();
  console.log(`${what}: ${(performance.now() - startMs).toFixed(0)} ms`);
  await report(page, what);
}

async function report(page: Page, what: string): Promise<void> {
  const tasks = await takeTasks(page);
  const longest = Math.max(0, ...tasks);
  const over = tasks.filter((ms) => ms > GOAL_TASK_MS).length;
  console.log(
    `${what}: ${tasks.length} tasks of at least 50 ms, the longest ${longest.toFixed(0)} ms, ${over} above ${GOAL_TASK_MS} ms (goal 0)`,
  );
  if (over > 0) misses.push(what);
}
