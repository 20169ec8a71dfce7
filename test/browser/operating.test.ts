import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createId } from "../../src/lib/ids.ts";
import { type GivenChannel, givenChannel } from "../support/channels.ts";
import { lookAt, pressUntil, startTestConsole, type TestConsole } from "../support/console.ts";
import { type HandlerServer, startHandlerServer } from "../support/handler-server.ts";
import { until } from "../support/until.ts";

let console: TestConsole;
let handlers: HandlerServer;
beforeAll(async () => {
  handlers = await startHandlerServer();
  console = await startTestConsole({ INLET_ALLOW_NETWORKS: "127.0.0.1/32" });
});
afterAll(async () => {
  await console?.[Symbol.asyncDispose]();
  await handlers?.[Symbol.asyncDispose]();
});

const ORDERS_PER_DELIVERY = 40;

interface Order {
  readonly id: string;
  readonly customer: { readonly email: string };
}

const ordersOf = (delivery: number): readonly Order[] =>
  Array.from({ length: ORDERS_PER_DELIVERY }, (_, n) => ({
    id: `order-${delivery}-${n}`,
    customer: { email: `customer-${delivery}-${n}@example.com` },
  }));

it("an operator finds an event by a field of its body among many, opens its delivery and copies it as curl", async () => {
  const shop = await givenChannel(console.gateway, {
    uid: "shop",
    config: { itemsPath: "$.orders[*]" },
    events: [{ type: "order.created", idPath: "$.id" }],
  });
  const recorded = (): Promise<readonly object[]> =>
    console.gateway.api("GET", `${shop.appPath}/deliveries?limit=200`);
  // The recorder samples at most one delivery per second.
  let sent = 0;
  let before = 0;
  await until(
    async () => {
      const { length } = await recorded();
      if (sent >= 5 && length > before) return true;
      before = length;
      await shop.send({ orders: ordersOf(sent++) });
      return false;
    },
    { everyMs: 300 },
  );
  const recordedIds = new Set<string>();
  for (const { events } of (await recorded()) as readonly { events: readonly { id: string }[] }[])
    for (const { id } of events) recordedIds.add(id);
  const wanted = ordersOf(sent - 1)
    .concat(ordersOf(0))
    .find(({ id }) => recordedIds.has(id));
  if (wanted === undefined) throw new Error("no delivery was recorded");

  await using opened = await console.open("/");
  const { page, context } = opened;
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("link", { name: "Events", exact: true }).click();
  await page.locator('[data-index="0"] time').waitFor();
  await pressUntil(page, "/", page.getByLabel("Field"));
  await page.getByLabel("Field").fill(`customer.email = ${wanted.customer.email}`);
  await page.getByText(/^1 found\. Scanned all /).waitFor();
  await page.locator('[data-index="0"]').getByText(wanted.id, { exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Event" });
  await panel.getByText(`"${wanted.customer.email}"`).waitFor();
  await panel.getByRole("link", { name: "Open the delivery" }).click();
  await page.getByText("1 delivery", { exact: true }).waitFor();
  await page.locator('[data-index="0"]').click();
  await page.waitForURL(`**/apps/${shop.appId}/deliveries/*`);
  await page.getByRole("button", { name: "Copy as curl" }).click();
  await page.getByText("Copied the delivery as a curl command").first().waitFor();
  const command = String(await page.evaluate("navigator.clipboard.readText()"));
  expect(command).toContain(shop.url);
  expect(command).toContain(wanted.customer.email);
});

it("an operator follows a problem to a handler that is gone, resumes it, and sends its dead letters again", async () => {
  const channel = await givenChannel(console.gateway, {
    uid: "payments",
    events: [{ type: "payment.made", idPath: "$.id" }],
  });
  handlers.answers.set("/payments", () => ({ status: 410 }));
  const { id: subscriptionId } = await console.gateway.api<{ id: string }>(
    "POST",
    `${channel.appPath}/events/subscribe`,
    { eventUid: "payments:*", handler: { url: handlers.urlOf("/payments") } },
  );
  await channel.send({ id: "waiting" });
  const fields = Object.entries({ specversion: "1.0", id: "lost", source: "/s", type: "payment.made" });
  await console.stores.db
    .insertInto("deadLetters")
    .values({
      id: createId("dl", Date.now()),
      subscriptionId,
      organizationId: channel.organizationId,
      topic: channel.topicOf("payment.made"),
      entryId: `${Date.now()}-0`,
      type: "payment.made",
      reason: "HTTP 500",
      fields: JSON.stringify([...fields.flat(), "data", '{"id":"lost"}']),
      attempts: "[]",
      createdAt: new Date(),
    })
    .execute();
  await until(
    async () =>
      (await console.gateway.api<readonly object[]>("GET", `/problems?appId=${channel.appId}`)).length === 1,
  );

  await using opened = await console.open("/");
  const { page } = opened;
  await page.locator(".problem").getByRole("link", { name: "payments:*" }).click();
  const panel = page.getByRole("complementary", { name: "Subscription" });
  await panel.getByText("410").first().waitFor();
  handlers.answers.delete("/payments");
  await panel.getByRole("button", { name: "Resume" }).click();
  await until(() => handlers.taken("/payments").length === 1);
  await panel.getByRole("link", { name: "1", exact: true }).click();
  await page.waitForURL(`**/dead-letters?**${subscriptionId}**`);
  await page.getByRole("button", { name: "Preview and send all again" }).click();
  await page.getByRole("button", { name: "Send 1 again" }).click();
  await until(() => handlers.taken("/payments").length === 2);
  const ids = handlers.taken("/payments").map(({ body }) => JSON.parse(body).id);
  expect(ids).toEqual(["waiting", "lost"]);
});

describe("the console of an organization with 1,000 apps", () => {
  const APPS = 1_000;
  const nameOf = (n: number): string => `shop-${String(n).padStart(4, "0")}`;
  let channel: GivenChannel;
  beforeAll(async () => {
    channel = await givenChannel(console.gateway, { uid: "hooks", events: [{ type: "seen" }] });
    const { db } = console.stores;
    const app = await db
      .selectFrom("apps")
      .selectAll()
      .where("id", "=", channel.appId)
      .executeTakeFirstOrThrow();
    // The apps are older than the one with the event, so that it is not among the first 200, which the console loads at the start.
    const others = Array.from({ length: APPS - 1 }, (_, n) => ({
      ...app,
      id: createId("app", app.createdAt.getTime() - APPS + n),
      uid: nameOf(n),
      title: `Shop number ${n}`,
      createdAt: new Date(app.createdAt.getTime() - APPS + n),
    }));
    await db.insertInto("apps").values(others).execute();
    await db.updateTable("apps").set({ uid: "newest-shop" }).where("id", "=", channel.appId).execute();
    await channel.send({});
  });

  it("lists all apps, renders at most 200 rows and reaches the last app with the End key", async () => {
    await using opened = await console.open("/apps");
    const { page } = opened;
    const grid = page.getByRole("grid", { name: "Apps" });
    await grid.locator('[data-index="0"]').focus();
    await page.keyboard.press("End");
    const count = Number(await grid.getAttribute("aria-rowcount")) - 1;
    expect(count).toBeGreaterThanOrEqual(APPS);
    await grid.locator(`[data-index="${count - 1}"]:not(.waiting)`).waitFor();
    expect(await grid.locator("[data-index]").count()).toBeLessThanOrEqual(200);
  });

  it("filters the events by an app that a search of the gateway finds, and shows the names of apps", async () => {
    await using opened = await console.open("/events");
    const { page } = opened;
    await page.getByRole("row").filter({ hasText: "newest-shop" }).first().waitFor();
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByRole("search").getByRole("button", { name: /^App/ }).click();
    await page.keyboard.type("newest-sh");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/events?app=${channel.appId}`);
    await page.getByRole("search").getByText("App newest-shop").waitFor();
    await page.getByText("1 event", { exact: true }).waitFor();
  });

  it("finds any app by a part of its name or title in the palette", async () => {
    await using opened = await console.open("/audit");
    const { page } = opened;
    for (const text of ["shop-0777", "number 777"]) {
      await page.getByRole("button", { name: /^Find…/ }).click();
      await page.getByRole("combobox", { name: "Id, app or page" }).fill(text);
      await page.getByRole("dialog").getByRole("option").filter({ hasText: "shop-0777" }).waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
  });

  it("is accessible and fits the window with the search for an app, in both themes and two window sizes", async () => {
    await lookAt(console, {
      name: "app-filter",
      path: `/events?app=${channel.appId}`,
      async ready(page) {
        await page.getByRole("button", { name: "Filter", exact: true }).click();
        await page.getByRole("search").getByRole("button", { name: /^App/ }).click();
        await page.getByRole("dialog").getByRole("row").nth(1).waitFor();
      },
    });
  });
});
