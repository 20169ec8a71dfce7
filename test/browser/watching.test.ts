import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createId } from "../../src/lib/ids.ts";
import { type GivenChannel, givenChannel } from "../support/channels.ts";
import { lookAt, pressUntil, startTestConsole, type TestConsole } from "../support/console.ts";
import { post } from "../support/deliver.ts";
import { type HandlerServer, startHandlerServer } from "../support/handler-server.ts";
import { type OtlpReceiver, startOtlpReceiver } from "../support/otlp-receiver.ts";
import { until } from "../support/until.ts";

let console: TestConsole;
let channel: GivenChannel;
let handlers: HandlerServer;
let spans: OtlpReceiver;
beforeAll(async () => {
  handlers = await startHandlerServer();
  spans = await startOtlpReceiver();
  console = await startTestConsole({
    INLET_ALLOW_NETWORKS: "127.0.0.1/32",
    OTEL_EXPORTER_OTLP_ENDPOINT: spans.origin,
    INLET_TRACE_URL: "https://tempo.example/trace/{traceId}",
  });
  channel = await givenChannel(console.gateway, { uid: "orders", events: [definition("number")] });
});
afterAll(async () => {
  await console?.[Symbol.asyncDispose]();
  await handlers?.[Symbol.asyncDispose]();
  await spans?.[Symbol.asyncDispose]();
});

const definition = (type: string) => ({
  type: "order.created",
  typePath: "$.type",
  idPath: "$.id",
  payloadPath: "$.order",
  schema: { type: "object", properties: { total: { type } } },
});

const order = (id: string, total: unknown, type = "order.created"): object => ({
  type,
  id,
  order: { total },
});

const row = (page: Page, text: string) => page.getByRole("row").filter({ hasText: text });

interface Recorded {
  readonly id: string;
  readonly requestId: string;
  readonly traceId: string;
  readonly events: readonly { readonly entryId: string }[];
  readonly quarantine: readonly { readonly id: string }[];
}

/** Sends deliveries until one is recorded. The recorder samples at most one delivery per second and channel. */
async function recorded(body: (n: number) => object): Promise<Recorded> {
  let found: Recorded | undefined;
  let n = 0;
  await until(
    async () => {
      const note = { "x-note": HOSTILE.replaceAll(/[^ -~]/g, "") };
      const { headers } = await post(channel.url ?? "", body(n++), note);
      const requestId = headers.get("x-request-id");
      await until(
        async () => {
          [found] = await console.gateway.api<readonly Recorded[]>(
            "GET",
            `${channel.appPath}/deliveries?requestId=${requestId}`,
          );
          return found !== undefined;
        },
        { everyMs: 200, ceilingMs: 2_500 },
      ).catch(() => {});
      return found !== undefined;
    },
    { everyMs: 200 },
  );
  if (found === undefined) throw new Error("no delivery was recorded");
  return found;
}

/** Key of a group of quarantined items, without its app. */
const GROUP = "orders~schema_mismatch~order.created";

/** The list of items in a group. It replaces the list of groups, so it is selected by name. */
const items = (page: Page) => page.getByRole("grid", { name: "Items" });

const HOSTILE =
  '<img src=x onerror="window.hit=1"><script>window.hit=1</script>\u202Egnp.exe\u200B javascript:window.hit=1';

describe("the quarantine view", () => {
  it("groups failed items, previews a redrive (publishing them again), and redrives them after their schema was fixed", async () => {
    for (let i = 0; i < 3; i++) await channel.send(order(`text-${i}`, "12"));
    await channel.send(order("other", 1, "order.unknown"));
    await using opened = await console.open(`${channel.appPath}/quarantine`);
    const { page } = opened;
    await page.getByText("4 items in 2 groups").waitFor();
    await row(page, "schema_mismatch").click();
    await items(page).getByText("/total").first().click();
    expect(new URL(page.url()).searchParams.get("group")).toBe(`${channel.appId}~${GROUP}`);
    await page
      .getByRole("complementary", { name: "Quarantined item" })
      .getByText("must be number")
      .first()
      .waitFor();
    await page.keyboard.press("Escape");

    const setTotalType = (type: string) =>
      console.gateway.api("PUT", `${channel.appPath}/channels/orders`, { events: [definition(type)] });
    const releasedBy = async (): Promise<string | null> => {
      await page.getByRole("button", { name: "Preview and redrive 3" }).click();
      const dialog = page.getByRole("dialog");
      const released = dialog.locator(".tally dd").first();
      await released.waitFor();
      const text = await released.textContent();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      return text;
    };
    expect(await releasedBy()).toBe("0");
    await setTotalType("string");
    await until(async () => (await releasedBy()) === "3");
    await page.getByRole("button", { name: "Preview and redrive 3" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Redrive 3", exact: true }).click();
    await expect.poll(() => page.getByRole("dialog").locator(".tally dd").first().textContent()).toBe("3");
    await page.getByRole("dialog").locator(".row.end").getByRole("button", { name: "Close" }).click();
    await page.getByText("This group is empty").waitFor();
    const left = await console.gateway.api<readonly { reason: string }[]>(
      "GET",
      `${channel.appPath}/quarantine`,
    );
    expect(left.map(({ reason }) => reason)).toEqual(["no_match"]);
    await setTotalType("number");
  });

  it("redrives only the selected items, and shows the API call with a variable in place of the API key", async () => {
    await channel.send(order("chosen", true));
    await channel.send(order("not chosen", false));
    await using opened = await console.open(
      `/quarantine?group=${encodeURIComponent(`${channel.appId}~${GROUP}`)}`,
    );
    const { page } = opened;
    await page.getByRole("checkbox").first().check();
    await page.getByRole("button", { name: "Redrive 1" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("API call").click();
    await expect
      .poll(() => dialog.locator("pre").textContent())
      .toContain('-H "Authorization: Bearer $INLET_API_KEY"');
    await dialog.getByRole("button", { name: "Redrive 1" }).click();
    await dialog.getByText("stay in quarantine").waitFor();
    await expect.poll(() => dialog.locator(".tally dd").nth(1).textContent()).toBe("1");
  });

  it("warns if a redrive would release no item, and deletes the selected items", async () => {
    const other = await givenChannel(console.gateway, { uid: "doomed", events: [definition("number")] });
    for (let i = 0; i < 3; i++) await other.send(order(`doomed-${i}`, "12"));
    await using opened = await console.open(`/quarantine?app=${other.appId}`);
    const { page } = opened;
    await row(page, "schema_mismatch").click();
    await page.getByRole("button", { name: "Preview and redrive 3" }).click();
    await page.getByText("No item would be released.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Select all" }).click();
    await page.getByRole("checkbox").first().uncheck();
    await page.getByRole("button", { name: "Delete 2" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete 2 items" });
    await dialog.getByRole("button", { name: "Delete 2" }).click();
    await dialog.getByText("2 of 2 deleted").waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("1 item", { exact: true }).waitFor();
    const left = await console.gateway.api<readonly object[]>("GET", `${other.appPath}/quarantine`);
    expect(left).toHaveLength(1);
  });

  it("waits for the preview of a redrive, which says if it examined only some of the items", async () => {
    const { payloadPath: _, typePath: __, ...each } = definition("number");
    const large = await givenChannel(console.gateway, {
      uid: "large",
      config: { itemsPath: "$.orders[*]" },
      events: [each],
    });
    await large.send({ orders: Array.from({ length: 201 }, (_, n) => ({ id: `large-${n}`, total: "12" })) });
    await using opened = await console.open(`/quarantine?app=${large.appId}`);
    const { page } = opened;
    const held = Promise.withResolvers<void>();
    await page.route("**/quarantine/preview", async (route) => {
      await held.promise;
      await route.continue();
    });
    await row(page, "schema_mismatch").click();
    await page.getByRole("button", { name: "Preview and redrive 201" }).click();
    const button = page.getByRole("dialog").getByRole("button", { name: "Redrive 201", exact: true });
    await button.waitFor();
    expect(await button.isDisabled()).toBe(true);
    held.resolve();
    await page.getByText("No examined item would be released.").waitFor();
    await page.getByText("for the first 200 of 201 items").waitFor();
    await expect.poll(() => button.isEnabled()).toBe(true);
  });

  it("shows markup in names, ids, headers and bodies as plain text", async () => {
    await channel.send(JSON.stringify({ ...order("x", HOSTILE), type: HOSTILE }), {
      "x-note": "<b onclick=1>note</b>",
    });
    await using opened = await console.open(`${channel.appPath}/quarantine`);
    const { page } = opened;
    await row(page, "no_match").click();
    await items(page).locator('[data-index="0"]').click();
    const panel = page.getByRole("complementary", { name: "Quarantined item" });
    await panel.getByRole("heading", { name: "Headers" }).waitFor();
    await expect.poll(() => panel.textContent()).toContain("\\u202Egnp.exe\\u200B");
    await expect.poll(() => panel.textContent()).toContain("<b onclick=1>note</b>");
    expect(await page.evaluate("'hit' in window")).toBe(false);
    expect(await panel.locator("img, script, b").count()).toBe(0);
  });

  const VIEWS: readonly [name: string, query: string, ready: (page: Page) => Promise<unknown>][] = [
    ["quarantine", "", (page) => page.getByRole("grid", { name: "Groups" }).waitFor()],
    [
      "quarantine-preview",
      "",
      async (page) => {
        await page.getByRole("button", { name: "Preview and redrive all" }).click();
        await page.getByText("would leave quarantine").waitFor();
      },
    ],
    [
      "quarantine-item",
      "",
      async (page) => {
        await row(page, "schema_mismatch").click();
        await items(page).getByText("/total").first().click();
        await page.getByRole("heading", { name: "Headers" }).waitFor();
      },
    ],
  ];
  it.each(
    VIEWS,
  )("is accessible and fits the window while it shows %s, in both themes and two window sizes", async (name, query, ready) => {
    await channel.send(order("looked-at", "text"));
    await lookAt(console, { name, path: `${channel.appPath}/quarantine${query}`, ready });
  });
});

describe("the console", () => {
  /** Invisible characters, and characters that change the direction of the text around them. */
  const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}]/u;

  it("runs no script from an event id, and escapes each invisible character of the id", async () => {
    await channel.send(order(HOSTILE, 1));
    await using opened = await console.open(`${channel.appPath}/events`);
    const { page } = opened;
    await page.locator('[data-index="0"]').click();
    const panel = page.getByRole("complementary", { name: "Event" });
    await panel.getByRole("heading", { name: "The event" }).waitFor();
    const { text, titles } = (await page.evaluate(
      "({ text: document.body.innerText, titles: [document.title, ...[...document.querySelectorAll('[title], [aria-label]')].flatMap((one) => [one.title, one.ariaLabel ?? ''])].join() })",
    )) as { readonly text: string; readonly titles: string };
    expect(text).toContain("\\u202Egnp.exe\\u200B");
    expect(text).not.toMatch(HIDDEN);
    expect(titles).not.toMatch(HIDDEN);
    expect(await page.evaluate("'hit' in window")).toBe(false);
    expect(await panel.locator("img, script").count()).toBe(0);
  });

  it("renders only the visible part of a body with one line of 3 MB, and saves that body as a text file", async () => {
    await channel.send({ type: "large", html: `<script>window.hit=1</script>${"x".repeat(3_000_000)}` });
    await using opened = await console.open(`${channel.appPath}/quarantine`);
    const { page } = opened;
    await row(page, "no_match").click();
    await items(page).locator('[data-index="0"]').click();
    const panel = page.getByRole("complementary", { name: "Quarantined item" });
    await panel.getByText("2.9 MiB").waitFor();
    expect(await panel.locator(".line").count()).toBeLessThanOrEqual(100);
    expect((await panel.textContent())?.length).toBeLessThan(100_000);
    const saving = page.waitForEvent("download");
    await panel.getByRole("button", { name: "Download" }).click();
    const saved = await saving;
    expect(saved.suggestedFilename()).toMatch(/^qr_\w+\.txt$/);
    await saved.cancel();
    expect(await page.evaluate("'hit' in window")).toBe(false);
  });

  it("offers neither redrives nor links to forbidden views if the API key can only read apps", async () => {
    await channel.send(order("read-only", "text"));
    const { key } = await console.gateway.api<{ key: string }>("POST", "/iam/api-keys", {
      name: "reader",
      permissions: ["apps.read"],
    });
    await using opened = await console.open(`${channel.appPath}/quarantine`, { key });
    const { page } = opened;
    await row(page, "schema_mismatch").click();
    await items(page).locator('[data-index="0"]').click();
    await page.getByRole("heading", { name: "Headers" }).waitFor();
    expect(await page.getByRole("button", { name: /redrive|delete/i }).count()).toBe(0);
    expect(await page.getByRole("checkbox").count()).toBe(0);
    await expect.poll(() => page.getByRole("link", { name: "Events" }).count()).toBe(1);
    expect(await page.getByRole("link", { name: "Deliveries" }).count()).toBe(0);
  });
});

describe("the view of dead letters", () => {
  /** Creates a subscription with a dead letter for each reason, numbered from 1. */
  async function givenLetters(handler: string, reasons: readonly string[]) {
    const { id } = await console.gateway.api<{ id: string }>("POST", `${channel.appPath}/events/subscribe`, {
      eventUid: "orders:*",
      handler: { url: handlers.urlOf(handler) },
    });
    const attempt = { at: new Date().toISOString(), status: 500, code: "http", durationMs: 12 };
    const topic = channel.topicOf("order.created");
    const letter = (n: number, reason: string) => {
      const attributes = { specversion: "1.0", id: `lost-${n}`, source: "/s", type: "order.created" };
      return {
        id: createId("dl", Date.now()),
        subscriptionId: id,
        organizationId: channel.organizationId,
        topic,
        entryId: `${Date.now()}-${n}`,
        type: "order.created",
        reason,
        fields: JSON.stringify([
          ...Object.entries(attributes).flat(),
          "data",
          JSON.stringify({ n, HOSTILE }),
        ]),
        attempts: JSON.stringify([attempt, attempt]),
        createdAt: new Date(),
      };
    };
    const letters = reasons.map((reason, index) => letter(index + 1, reason));
    await console.stores.db.insertInto("deadLetters").values(letters).execute();
    return { id, letterIds: letters.map((one) => one.id) };
  }

  it("shows each failed attempt of the handler, and sends a dead letter to the handler again", async () => {
    const { id } = await givenLetters("/orders", ["HTTP 500", "HTTP 500", "timeout"]);
    await lookAt(console, {
      name: "dead-letters",
      path: `${channel.appPath}/dead-letters?subscription=${id}`,
      ready: async (page) => {
        await row(page, "HTTP 500").click();
        await row(page, "lost-1").click();
        await page.getByRole("heading", { name: "Attempts (2)" }).waitFor();
        expect(await page.evaluate("'hit' in window")).toBe(false);
      },
    });
    await using opened = await console.open(`${channel.appPath}/dead-letters`);
    const { page } = opened;
    await row(page, "timeout").click();
    await row(page, "lost-3").click();
    await page.getByRole("button", { name: "Send again" }).click();
    await page.getByText("This group is empty").waitFor();
    await page.getByRole("link", { name: "All groups" }).click();
    await page.getByRole("button", { name: "Preview and send all again" }).click();
    await page.getByRole("button", { name: "Send 2 again" }).click();
    await page.getByText("2 of 2 sent to the handler").waitFor();
    await until(() => handlers.taken("/orders").length === 3);
    const sent = handlers.taken("/orders").map(({ body }) => JSON.parse(body).n);
    expect(sent.sort()).toEqual([1, 2, 3]);
  });

  it("does not count a dead letter as sent if it is already gone", async () => {
    const { id, letterIds } = await givenLetters("/gone", ["HTTP 503", "HTTP 503"]);
    await using opened = await console.open(`/dead-letters?app=${channel.appId}&subscription=${id}`);
    const { page, complaints } = opened;
    await row(page, "HTTP 503").click();
    await page.getByRole("button", { name: "Select all" }).click();
    await page.getByRole("button", { name: "Send 2 again", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("2 events will be sent again").waitFor();
    const letters = `${channel.appPath}/subscriptions/${id}/dead-letters`;
    await console.gateway.api("DELETE", `${letters}/${letterIds[0]}`);
    await dialog.getByRole("button", { name: "Send 2 again" }).click();
    await expect.poll(() => dialog.locator(".tally").textContent()).toBe("sent to the handler1already gone1");
    expect(complaints.splice(0)).toEqual([expect.stringContaining("404")]);
    await until(() => handlers.taken("/gone").length === 1);
  });
});

describe("the events view", () => {
  /** Writes entries directly to the topic, spread over two days. */
  async function fill(topic: string, count: number): Promise<void> {
    const startMs = Date.now() - 172_800_000;
    for (let first = 0; first < count; first += 5_000) {
      const pipeline = console.stores.client.pipeline();
      for (let n = first; n < Math.min(count, first + 5_000); n++) {
        // The rate grows with time, so that the events are unevenly distributed.
        const ms = startMs + Math.floor(172_000_000 * Math.sqrt(n / count));
        const fields = { specversion: "1.0", id: `many-${n}`, source: "/s", type: "many.made" };
        pipeline.xadd(
          topic,
          `${ms}-${n + 1}`,
          ...Object.entries(fields).flat(),
          ...["datacontenttype", "application/json", "data", JSON.stringify({ order: { n } })],
        );
      }
      await pipeline.exec();
    }
  }

  it("lists 100,000 events newest first, jumps to any of them, searches them, and renders at most 200 rows", async () => {
    const many = await givenChannel(console.gateway, { uid: "many", events: [{ type: "many.made" }] });
    const topic = many.topicOf("many.made");
    await fill(topic, 100_000);
    await using opened = await console.open(`${many.appPath}/events`);
    const { page } = opened;
    const grid = page.getByRole("grid", { name: "Events" });
    await page.getByText("100,000 events").waitFor();
    await grid.locator('[data-index="0"]').getByText("many-99999", { exact: true }).waitFor();
    await grid.locator('[data-index="0"]').focus();
    const expectEvent = async (index: number): Promise<void> => {
      const event = grid.locator(`[data-index="${index}"]`);
      await event.getByText(`many-${99_999 - index}`, { exact: true }).waitFor();
      expect(await page.locator("[data-index]").count()).toBeLessThanOrEqual(200);
    };
    await page.keyboard.press("End");
    await expectEvent(99_999);
    await page.evaluate("document.querySelector('.table').scrollTop = 50_000 * 32");
    await expectEvent(50_000);

    // Holds the second page of the search, so that it is running until the test goes on.
    const held = Promise.withResolvers<void>();
    await page.route(/\/v1\/events\?.*path=.*cursor=/, async (route) => {
      await held.promise;
      await route.continue().catch(() => {});
    });
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByLabel("Field").fill("order.n = 99990");
    await page.getByText("1 found. Scanned 5,000 of 100,000 retained events.").waitFor();
    await page.getByRole("progressbar").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    held.resolve();
    await page.getByRole("button", { name: "Search further" }).click();
    await page.getByText("1 found. Scanned all 100,000 retained events.").waitFor();
    expect(new URL(page.url()).searchParams.get("field")).toBe("order.n = 99990");
    await page.locator('[data-index="0"]').click();
    await page.getByRole("complementary", { name: "Event" }).getByText('"n": 99990').waitFor();
  });

  it("finds events by channel, type and id, and keeps these filters in its address", async () => {
    await channel.send(order("find-me", 1));
    await channel.send(order("find-me-not", 2));
    const path = `${channel.appPath}/events?type=order.created&channel=orders&id=find-me`;
    await using opened = await console.open(path);
    const { page } = opened;
    await page.getByText(/^1 found\. Scanned all /).waitFor();
    expect(page.url()).toContain(`/console/events?app=${channel.appId}&`);
    const found = page.locator('[data-index="0"]');
    await found.getByText("find-me", { exact: true }).waitFor();
    await found.focus();
    await page.keyboard.press("Enter");
    await page
      .getByRole("heading", { name: "Event", exact: true, level: 2 })
      .and(page.locator(":focus"))
      .waitFor();
    await page.keyboard.press("Escape");
    await page.locator('[data-index="0"]:focus').waitFor();
  });

  it("has a live tail that can be filtered and paused, and resumes without missing events", async () => {
    await using opened = await console.open(`${channel.appPath}/tail`);
    const { page } = opened;
    const grid = page.getByRole("grid", { name: "Live events" });
    await page.locator(".badge", { hasText: "Live" }).waitFor();
    await page.getByText("Waiting for events").waitFor();
    await channel.send(order("tail-1", 1));
    await grid.getByText("tail-1").waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.locator(".badge", { hasText: "Paused" }).waitFor();
    for (let i = 2; i <= 29; i++) await channel.send(order(`tail-${i}`, i));
    expect(await grid.getByText("tail-2", { exact: true }).count()).toBe(0);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText(/^Showing 29 of 29/).waitFor();
    await grid.locator('[data-index="0"]').getByText("tail-29").waitFor();
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByLabel("Field").fill("total = 7");
    await page.getByText(/^Showing 1 of 29/).waitFor();
    await page.keyboard.press("Escape");
  });

  it("is accessible and fits the window with an open detail panel, in both themes and two window sizes", async () => {
    await channel.send(order("detail", 1));
    await lookAt(console, {
      name: "events",
      path: `${channel.appPath}/events`,
      ready: async (page) => {
        await page.locator('[data-index="0"]').getByText("order.created").click();
        await page.getByRole("heading", { name: "The event" }).waitFor();
      },
    });
  });

  it("is accessible and fits the window during a live tail, in both themes and two window sizes", async () => {
    await lookAt(console, {
      name: "tail",
      path: `${channel.appPath}/tail`,
      ready: async (page) => {
        await page.locator(".badge", { hasText: "Live" }).waitFor();
        await channel.send(order(`seen-${Math.random()}`, 1));
        await page.locator('[data-index="0"]').waitFor();
      },
    });
  });
});

describe("the deliveries view", () => {
  it("finds a delivery by its request id or by an event, and shows each step from its arrival to its readers", async () => {
    const subscription = await console.gateway.api<{ id: string }>(
      "POST",
      `${channel.appPath}/events/subscribe`,
      { eventUid: "orders:*" },
    );
    const { id, requestId, traceId, events } = await recorded((n) => order(`told-${n}`, 12));
    await using opened = await console.open(`${channel.appPath}/deliveries?requestId=${requestId}`);
    const { page } = opened;
    await page.getByText("1 delivery", { exact: true }).waitFor();
    await page.locator('[data-index="0"]').click();
    await page.waitForURL(`**/deliveries/${id}`);
    const steps = page.getByRole("list", { name: "Processing steps" });
    await steps.getByText("not read yet").waitFor();
    for (const step of [
      "Received",
      "Not verified",
      "Matched",
      "Validated",
      "Published",
      "Read",
      subscription.id,
    ])
      await steps.getByText(step).first().waitFor();
    await expect
      .poll(() => page.getByRole("link", { name: "Open trace" }).getAttribute("href"))
      .toBe(`https://tempo.example/trace/${traceId}`);
    await page.getByRole("button", { name: "Hex" }).click();
    await page.getByText(/^\s*1\s*00000000 {2}7b 22 74 79/).waitFor();
    await page.getByText("The current definitions give the same result").waitFor();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy as curl" }).click();
    await page.getByText("Copied the delivery as a curl command").first().waitFor();
    const curl = String(await page.evaluate("navigator.clipboard.readText()"));
    expect(curl).toContain(`curl -sS -X POST \\\n  '${channel.url}'`);
    await page.getByRole("link", { name: "Open event" }).waitFor();
    await expect
      .poll(() => page.getByLabel("Headers").textContent())
      .toContain("<script>window.hit=1</script>");
    expect(await page.evaluate("'hit' in window")).toBe(false);
    await page.goBack();
    await page.getByRole("button", { name: "Remove the filter Request" }).click();
    await page.locator("body").press("/");
    await page.getByLabel("Event", { exact: true }).fill(events[0]?.entryId ?? "");
    await page.getByText("1 delivery", { exact: true }).waitFor();
  });

  it("shows why a delivery published no event, and how to fix the cause", async () => {
    const { id, quarantine } = await recorded((n) => order(`wrong-${n}`, `${n}`));
    await using opened = await console.open(`${channel.appPath}/quarantine?item=${quarantine[0]?.id}`);
    await opened.page.getByRole("link", { name: "Open the delivery" }).click();
    await opened.page.getByText("1 found").waitFor();
    await opened.page.locator('[data-index="0"]').click();
    await opened.page.waitForURL(`**/deliveries/${id}`);
    await opened.page.getByRole("button", { name: "Redrive", exact: true }).click();
    await opened.page.getByText("No item would be released.").waitFor();
    await lookAt(console, {
      name: "delivery",
      path: `${channel.appPath}/deliveries/${id}`,
      ready: async (page) => {
        const steps = page.getByRole("list", { name: "Processing steps" });
        await steps.getByText("The data does not match the schema of its definition.").waitFor();
        await steps.getByText("Fix the schema").waitFor();
        await page.getByRole("link", { name: "Fix the definitions" }).waitFor();
        await page.getByRole("button", { name: "Redrive", exact: true }).waitFor();
      },
    });
  });

  it("shows a filter without an option, and keeps the other filters when another app is chosen", async () => {
    const { appId } = channel;
    await using opened = await console.open(
      `/deliveries?app=${appId}&channel=gone&status=published&last=24h`,
    );
    const { page } = opened;
    await page.getByRole("search").getByText("Channel gone").waitFor();
    await page.getByRole("button", { name: /^App / }).click();
    await page.getByRole("dialog", { name: "Switch app" }).getByText("inlet", { exact: true }).click();
    await page.waitForURL((url) => !url.search.includes(appId));
    expect(new URL(page.url()).search).toMatch(
      /^\?status=published&last=24h&app=app_\w+$|status=published.*last=24h/,
    );
    expect(page.url()).not.toContain("channel=");
  });

  it("shows each active filter as a chip that removes it, and the inputs on demand", async () => {
    await using opened = await console.open("/deliveries?channel=orders&status=published&type=order.created");
    const { page } = opened;
    const search = page.getByRole("search");
    await expect
      .poll(() => search.locator(".chip-text").allTextContents())
      .toEqual(["Channel orders", "Status published", "Type order.created"]);
    await search.getByRole("button", { name: "Remove the filter Status" }).click();
    await page.waitForURL(/\?channel=orders&type=order\.created$/);
    const toggle = search.getByRole("button", { name: "Filter", exact: true });
    const status = search.locator(".filter").filter({ hasText: "Status" }).locator("select");
    await toggle.and(page.locator(":focus")).waitFor();
    await status.waitFor({ state: "detached" });
    await page.keyboard.press("Enter");
    await status.selectOption("published");
    await search.getByText("Status published").waitFor();
    await toggle.click();
    await status.waitFor({ state: "detached" });
    await search.getByRole("button", { name: "Clear" }).click();
    await page.waitForURL(/\/deliveries$/);
    await expect.poll(() => search.locator(".chip").count()).toBe(0);
  });

  it("selects a time range that ends now, and saves the filters as a view, which is a link", async () => {
    await using opened = await console.open("/deliveries?status=published");
    const { page } = opened;
    await page.getByRole("button", { name: "24 h" }).click();
    await page.waitForURL(/\?status=published&last=24h$/);
    await page.getByRole("button", { name: "24 h", pressed: true }).waitFor();
    await page.getByRole("button", { name: "Save view" }).click();
    await page.getByLabel("Name of the view").fill("Published today");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Deliveries", exact: true }).click();
    await page.waitForURL(/\/deliveries$/);
    await page.getByRole("link", { name: "Published today" }).click();
    await page.waitForURL(/\?status=published&last=24h$/);
    await page.getByRole("button", { name: "Delete the view Published today" }).click();
    await page.getByRole("link", { name: "Published today" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "24 h" }).click();
    await page.waitForURL(/\?status=published$/);
  });

  it("is accessible and fits the window, in both themes and two window sizes", async () => {
    await lookAt(console, {
      name: "deliveries",
      path: `/deliveries?app=${channel.appId}&channel=orders&status=published&last=24h`,
      ready: (page) => page.locator('[data-index="0"] time').waitFor(),
    });
  });
});

describe("the palette", () => {
  it("finds a delivery by the id of its request from any page, with two actions", async () => {
    const { id, requestId } = await recorded(() => order(createId("o", Date.now()), 1));
    await using opened = await console.open("/audit");
    const { page } = opened;
    await page.getByRole("heading", { name: "Audit" }).waitFor();
    await pressUntil(page, "Control+k", page.getByRole("dialog"));
    await page.getByRole("combobox", { name: "Id, app or page" }).fill(requestId);
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/deliveries/${id}`);
    await page.getByRole("list", { name: "Processing steps" }).waitFor();
  });

  it("goes to pages by name with the keyboard, says when there are no results, and closes with Escape", async () => {
    await using opened = await console.open("/");
    const { page } = opened;
    await page.getByRole("button", { name: /^Find…/ }).click();
    const input = page.getByRole("combobox", { name: "Id, app or page" });
    await input.fill("no such thing anywhere");
    await page.getByText("No results.").waitFor();
    await page.keyboard.press("Escape");
    await input.waitFor({ state: "detached" });
    await page.keyboard.press("Control+k");
    await input.fill("quar");
    const options = page.getByRole("dialog").getByRole("option");
    await options.filter({ hasText: "Quarantine" }).waitFor();
    await input.fill("e");
    await options.nth(2).waitFor();
    const second = await options.nth(1).getAttribute("href");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**${second}`);
  });

  it("is accessible and fits the window, in both themes and two window sizes", async () => {
    await lookAt(console, {
      name: "palette",
      path: "/audit",
      ready: async (page) => {
        await pressUntil(page, "Control+k", page.getByRole("dialog"));
        await page.getByRole("combobox", { name: "Id, app or page" }).fill("orders");
        await page.getByRole("dialog").getByRole("option").filter({ hasText: "Channel" }).first().waitFor();
      },
    });
  });
});
