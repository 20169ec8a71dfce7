import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createId } from "../../src/lib/ids.ts";
import { lookAt, startTestConsole, type TestConsole } from "../support/console.ts";
import { channelOf, type InstalledApp, installApp } from "../support/gateway.ts";
import { type HandlerServer, startHandlerServer } from "../support/handler-server.ts";
import { until } from "../support/until.ts";

let console: TestConsole;
let app: InstalledApp;
let handlers: HandlerServer;
beforeAll(async () => {
  handlers = await startHandlerServer();
  console = await startTestConsole({ INLET_ALLOW_NETWORKS: "127.0.0.1/32" });
  app = await installApp(console.gateway, [
    { uid: "orders", kind: "webhook", events: [definition("number")] },
  ]);
});
afterAll(async () => {
  await console?.[Symbol.asyncDispose]();
  await handlers?.[Symbol.asyncDispose]();
});

const definition = (type: string): object => ({
  ...{ type: "order.created", typePath: "$.type", idPath: "$.id", payloadPath: "$.order" },
  schema: { type: "object", properties: { total: { type } } },
});

async function send(
  body: object | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const { pathname } = new URL(channelOf(app).url ?? "");
  return fetch(`${console.gateway.origin}${pathname}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

const order = (id: string, total: unknown, type = "order.created"): object => ({
  type,
  id,
  order: { total },
});

const row = (page: Page, text: string) => page.getByRole("row").filter({ hasText: text });

const HOSTILE =
  '<img src=x onerror="window.hit=1"><script>window.hit=1</script>\u202Egnp.exe\u200B javascript:window.hit=1';

describe("quarantine", () => {
  it("groups what failed, says what a re-drive would do, and re-drives it once the schema is mended", async () => {
    for (let i = 0; i < 3; i++) await send(order(`text-${i}`, "12"));
    await send(order("other", 1, "order.unknown"));
    await using opened = await console.open(`/apps/${app.id}/quarantine`);
    const { page } = opened;
    await page.getByText("4 items in 2 groups").waitFor();
    await row(page, "schema_mismatch").click();
    expect(new URL(page.url()).searchParams.get("group")).toBe("orders~schema_mismatch~order.created");
    await row(page, "/total").first().click();
    await page
      .getByRole("complementary", { name: "Quarantined item" })
      .getByText("must be number")
      .first()
      .waitFor();
    await page.keyboard.press("Escape");

    const mend = (type: string) =>
      console.gateway.api("PUT", `/apps/${app.id}/channels/orders`, { events: [definition(type)] });
    const releasedBy = async (): Promise<string | null> => {
      await page.getByRole("button", { name: "Preview and re-drive 3" }).click();
      const dialog = page.getByRole("dialog");
      const released = dialog.locator(".tally dd").first();
      await released.waitFor();
      const text = await released.textContent();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      return text;
    };
    expect(await releasedBy()).toBe("0");
    await mend("string");
    await until(async () => (await releasedBy()) === "3");
    await page.getByRole("button", { name: "Preview and re-drive 3" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Re-drive 3", exact: true }).click();
    await expect.poll(() => page.getByRole("dialog").locator(".tally dd").first().textContent()).toBe("3");
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
    await page.getByText("This group is empty now").waitFor();
    const left = await console.gateway.api<readonly { reason: string }[]>(
      "GET",
      `/apps/${app.id}/quarantine`,
    );
    expect(left.map(({ reason }) => reason)).toEqual(["no_match"]);
    await mend("number");
  });

  it("runs those again that were chosen, and shows the call with the key by its name only", async () => {
    await send(order("chosen", true));
    await send(order("not chosen", false));
    await using opened = await console.open(
      `/apps/${app.id}/quarantine?group=${encodeURIComponent("orders~schema_mismatch~order.created")}`,
    );
    const { page } = opened;
    await page.getByRole("checkbox").first().check();
    await page.getByRole("button", { name: "Re-drive 1" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("API call").click();
    expect(await dialog.locator("pre").textContent()).toContain('-H "Authorization: Bearer $INLET_API_KEY"');
    await dialog.getByRole("button", { name: "Re-drive 1" }).click();
    await dialog.getByText("stay in quarantine").waitFor();
    await expect.poll(() => dialog.locator(".tally dd").nth(1).textContent()).toBe("1");
  });

  it("shows what strangers sent as text: names, ids, headers, bodies", async () => {
    await send(JSON.stringify({ ...order("x", HOSTILE), type: HOSTILE }), {
      "x-note": "<b onclick=1>note</b>",
    });
    await using opened = await console.open(`/apps/${app.id}/quarantine`);
    const { page } = opened;
    await row(page, "no_match").click();
    await row(page, "no").first().click();
    const panel = page.getByRole("complementary", { name: "Quarantined item" });
    await panel.getByRole("heading", { name: "Headers" }).waitFor();
    expect(await panel.textContent()).toContain("\\u202Egnp.exe\\u200B");
    expect(await panel.textContent()).toContain("<b onclick=1>note</b>");
    expect(await page.evaluate("'hit' in window")).toBe(false);
    expect(await panel.locator("img, script, b").count()).toBe(0);
  });

  it("looks as it should in both themes, wide and narrow: groups, and one item", async () => {
    const path = `/apps/${app.id}/quarantine`;
    await lookAt(console, {
      name: "quarantine",
      path,
      ready: (page) => page.getByRole("grid", { name: "Groups" }).waitFor(),
    });
    await lookAt(console, {
      name: "quarantine-item",
      path: `${path}?group=${encodeURIComponent("orders~schema_mismatch~order.created")}`,
      ready: async (page) => {
        await row(page, "/total").first().click();
        await page.getByRole("heading", { name: "Headers" }).waitFor();
      },
    });
  });
});

describe("dead letters", () => {
  it("say why a handler did not take an event, attempt by attempt, and send it again", async () => {
    const { id } = await console.gateway.api<{ id: string }>("POST", `/apps/${app.id}/events/subscribe`, {
      eventUid: "orders:*",
      handler: { url: handlers.urlOf("/orders") },
    });
    const attempt = { at: new Date().toISOString(), status: 500, code: "http", durationMs: 12 };
    const topic = app.topicOf("orders", "order.created");
    const letter = (n: number, reason: string) => {
      const attributes = { specversion: "1.0", id: `lost-${n}`, source: "/s", type: "order.created" };
      return {
        ...{ id: createId("dl", Date.now()), subscriptionId: id, organizationId: app.organizationId, topic },
        ...{ entryId: `${Date.now()}-${n}`, type: "order.created", reason },
        fields: JSON.stringify([
          ...Object.entries(attributes).flat(),
          "data",
          JSON.stringify({ n, HOSTILE }),
        ]),
        attempts: JSON.stringify([attempt, attempt]),
        createdAt: new Date(),
      };
    };
    const letters = [letter(1, "HTTP 500"), letter(2, "HTTP 500"), letter(3, "timeout")];
    await console.stores.db.insertInto("deadLetters").values(letters).execute();
    await lookAt(console, {
      name: "dead-letters",
      path: `/apps/${app.id}/dead-letters?subscription=${id}`,
      ready: async (page) => {
        await row(page, "HTTP 500").click();
        await row(page, "lost-1").click();
        await page.getByRole("heading", { name: "Attempts (2)" }).waitFor();
        expect(await page.evaluate("'hit' in window")).toBe(false);
      },
    });
    await using opened = await console.open(`/apps/${app.id}/dead-letters`);
    const { page } = opened;
    await row(page, "orders:*").click();
    await row(page, "timeout").click();
    await row(page, "lost-3").click();
    await page.getByRole("button", { name: "Send again" }).click();
    await page.getByText("This group is empty now").waitFor();
    await page.getByRole("link", { name: "All groups" }).click();
    await page.getByRole("button", { name: "Preview and send all again" }).click();
    await page.getByRole("button", { name: "Send 2 again" }).click();
    await page.getByText("2 of 2 on their way to the handler").waitFor();
    await until(() => handlers.taken("/orders").length === 3);
    const sent = handlers.taken("/orders").map(({ body }) => JSON.parse(body).n);
    expect(sent.sort()).toEqual([1, 2, 3]);
  });
});
