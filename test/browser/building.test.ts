import { createHmac } from "node:crypto";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { startCallbackServer } from "../mcp/callback-server.ts";
import { connectAgent } from "../mcp/clients.ts";
import { installApp } from "../support/channels.ts";
import { lookAt, startTestConsole, type TestConsole } from "../support/console.ts";
import { deliver, post } from "../support/deliver.ts";
import { createIntake } from "../support/intakes.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { untilRecorded } from "../support/recorded.ts";

let console: TestConsole;
beforeAll(async () => {
  console = await startTestConsole({ INLET_ALLOW_NETWORKS: "127.0.0.0/8" });
});
afterAll(() => console?.[Symbol.asyncDispose]());

it("the console creates a channel for a provider, sets its secret, and publishes a test event", async () => {
  await using opened = await console.open("/start");
  const { page } = opened;
  await page.getByLabel("Sender").fill("strip");
  await page.getByRole("button", { name: "Stripe", exact: true }).click();
  await expect.poll(() => page.getByLabel("Event types, one per line").inputValue()).toBe("charge.succeeded");
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.getByText("needs secret").waitFor();
  await expect
    .poll(() => page.getByRole("figure", { name: "address" }).textContent())
    .toContain("/hooks/ch_");
  await page.getByLabel("Signing secret").fill("whsec_0123456789");
  await page.getByRole("button", { name: "Set the secret" }).click();
  await page.getByText("ready", { exact: true }).waitFor();
  await page.getByText("The channel has 1 stored secret. The new secret replaces it.").waitFor();
  // A generated secret stays visible after it was saved, because Inlet never shows it again.
  await page.getByRole("button", { name: "Generate a secret" }).click();
  const field = page.getByLabel("Signing secret");
  await expect.poll(() => field.inputValue()).toMatch(/^.{44}$/);
  const generated = await field.inputValue();
  await page.getByRole("button", { name: "Set the secret" }).click();
  await expect
    .poll(() => page.getByRole("figure", { name: "secret" }).locator("pre").textContent())
    .toBe(generated);
  await page.getByRole("button", { name: "Send a test event" }).click();
  await page.getByText("is on its topic").waitFor();
  const appId = new URL(page.url()).searchParams.get("app");
  const events = await console.gateway.api<{ type: string }[]>("GET", `/apps/${appId}/events`);
  expect(events.map(({ type }) => type)).toEqual(["charge.succeeded"]);
  // A reload keeps the user signed in, and shows the same channel.
  await page.reload();
  await page.getByText("ready", { exact: true }).waitFor();
});

it("the console creates a channel for any sender with a generated secret, and shows its first event when it arrives", async () => {
  const app = await installApp(console.gateway, [{ uid: "other", kind: "webhook" }]);
  await using opened = await console.open("/start");
  const { page } = opened;
  await page.getByRole("button", { name: /^Webhook/ }).click();
  await page.getByLabel("How the sender signs").selectOption("hmacHex");
  const field = page.getByLabel(/^Secret/);
  await expect.poll(async () => Buffer.from(await field.inputValue(), "base64").length).toBe(32);
  const secret = await field.inputValue();
  await page.getByLabel("Sample body").fill('{"id": 1, "event": {"kind": "order.created"}}');
  await page.getByText("In the sample: order.created").waitFor();
  expect(await page.getByLabel(/^Type path/).inputValue()).toBe("$.event.kind");
  expect(await page.getByLabel("Event types, one per line").inputValue()).toBe("order.created");
  // For an existing app, the call contains the secret.
  await page.locator("form.make-channel").getByLabel(/^App/).selectOption(app.id);
  await page.getByText("API call").click();
  await expect.poll(() => page.locator("form pre").textContent()).toContain('"value": "…"');
  expect(await page.locator("form pre").textContent()).not.toContain(secret);
  await page.getByRole("button", { name: "Create the channel" }).click();
  expect(await page.getByRole("figure", { name: "secret" }).locator("pre").textContent()).toBe(secret);
  await page.getByText("Waiting for the first event").waitFor();
  const query = new URL(page.url()).searchParams;
  await lookAt(console, {
    name: "start-connect",
    path: `/start?${query}`,
    ready: (shown) => shown.getByText("Waiting for the first event").waitFor(),
  });
  const address = await page.getByRole("figure", { name: "address" }).locator("pre").textContent();
  const body = '{"id": 2, "event": {"kind": "order.created"}}';
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const sent = await deliver(address ?? "", body, { "x-signature": signature });
  expect(sent).toMatchObject({ published: 1 });
  await page.getByRole("link", { name: "order.created" }).click();
  await page.getByRole("complementary", { name: "Event" }).getByText('"kind": "order.created"').waitFor();
});

it("the console keeps a secret that the user enters in place of the generated one", async () => {
  await using opened = await console.open("/start?way=webhook");
  const { page } = opened;
  const field = page.getByLabel(/^Secret/);
  await field.fill("secret-of-the-sender");
  await page.getByLabel("How the sender signs").selectOption("hmacHex");
  await page.getByLabel("Header", { exact: true }).waitFor();
  expect(await field.inputValue()).toBe("secret-of-the-sender");
  await page.getByLabel("Name of the channel").fill("pasted");
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.getByRole("heading", { name: "Give the sender this address", exact: true }).waitFor();
  expect(await page.getByRole("figure", { name: "secret" }).count()).toBe(0);
});

it("the console shows a generated secret only for its own channel", async () => {
  await using opened = await console.open("/start?way=webhook");
  const { page } = opened;
  await page.getByLabel("Name of the channel").fill("first");
  await page.getByRole("button", { name: "Create the channel" }).click();
  const heading = page.getByRole("heading", { name: "Give the sender this address and secret" });
  await heading.waitFor();
  await page.locator("#nav").getByRole("link", { name: "Receive events" }).click();
  await page.getByRole("button", { name: "GitHub", exact: true }).click();
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.getByRole("heading", { name: "Give GitHub this address", exact: true }).waitFor();
  expect(await page.getByRole("figure", { name: "secret" }).count()).toBe(0);
  await page.goBack();
  await heading.waitFor();
});

it("the console creates a channel that reads a stream of any sender, and shows the state of its source", async () => {
  await using opened = await console.open("/start?way=poll");
  const { page } = opened;
  await page.getByLabel("Path of the items").waitFor();
  await page.getByRole("radio", { name: /^Stream/ }).check();
  await page.getByLabel("URL", { exact: true }).fill("http://127.0.0.1:9/events");
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.getByRole("heading", { name: "Inlet reads the stream" }).waitFor();
  await page.getByRole("link", { name: "Open the source" }).waitFor();
  const { app, channel } = Object.fromEntries(new URL(page.url()).searchParams);
  expect(await console.gateway.api("GET", `/apps/${app}/channels/${channel}`)).toMatchObject({
    kind: "sse",
    config: { url: "http://127.0.0.1:9/events", run: "always" },
    events: [{ type: "received" }],
  });
});

it("the console creates a channel that polls an API of any sender, and shows its first event when it arrives", async () => {
  await using upstream = await PollUpstream.start();
  await using opened = await console.open("/start");
  const { page } = opened;
  await page.getByRole("button", { name: /^Poll/ }).click();
  await page.getByLabel("URL", { exact: true }).fill(`${upstream.origin}/rows`);
  await page.getByLabel("Path of the items").fill("$.rows");
  await page.getByLabel("Seconds between polls").fill("5");
  await page.getByLabel("Event types, one per line").fill("row.added");
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.getByRole("heading", { name: "Inlet polls the API" }).waitFor();
  await page.getByText("Waiting for the first event").waitFor();
  await expect.poll(() => upstream.requests.length).toBeGreaterThan(0);
  const { id } = upstream.insert();
  await page.getByRole("link", { name: "row.added" }).click();
  await page.getByRole("complementary", { name: "Event" }).getByText(`"id": "${id}"`).first().waitFor();
});

it("the console creates a channel that polls a list of a provider, and names an invalid parameter at its field", async () => {
  const connection = {
    name: "octo",
    kind: "bearer",
    config: { token: "t" },
    allowedOrigins: ["https://api.github.com"],
  };
  const { id: connectionId } = await console.gateway.api<{ id: string }>("POST", "/connections", connection);
  await using opened = await console.open("/start?preset=github");
  const { page, complaints } = opened;
  await page.getByRole("radio", { name: /^Poll/ }).check();
  await page.getByLabel("How events arrive").selectOption("issues");
  await page.getByLabel("Owner", { exact: true }).fill("not an owner");
  await page.getByLabel("Repository", { exact: true }).fill("demo");
  await page.getByLabel("Connection").selectOption("octo");
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.getByText("must match").first().waitFor();
  expect(complaints.splice(0)).toEqual([expect.stringContaining("400")]);
  await page.getByLabel("Owner", { exact: true }).fill("octo");
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.waitForURL(/\/sources\?app=.*&channel=issues/);
  const appId = new URL(page.url()).searchParams.get("app");
  const channel = await console.gateway.api("GET", `/apps/${appId}/channels/issues`);
  expect(channel).toMatchObject({
    connectionId,
    config: { preset: "github", stream: "issues", params: { owner: "octo", repo: "demo" } },
  });
});

it("the definitions editor shows what edited event definitions would do with recorded deliveries, and saves the definitions", async () => {
  const app = await installApp(console.gateway, [
    {
      uid: "orders",
      kind: "webhook",
      events: [
        { type: "order", typePath: "$.type", payloadPath: "$.order", schema: { required: ["total"] } },
      ],
    },
  ]);
  const sent = await fetch(app.channels[0]?.url ?? "", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ type: "order", order: { sum: 1 } }),
  });
  expect(await sent.json()).toMatchObject({ quarantined: 1 });
  await untilRecorded(console.gateway, app.id);
  await using opened = await console.open(`/apps/${app.id}/channels/orders/definitions`);
  const { page } = opened;
  await page.getByText("schema_mismatch").first().waitFor();
  await page.getByRole("button", { name: "JSON", exact: true }).click();
  const editor = page.getByRole("textbox", { name: "Definitions (JSON)" });
  await page.locator(".editor .cm-editor").waitFor();
  await editor.fill('[{"type": "order", "typePath": "$.type", "payloadPath": "$.order"}]');
  await page.getByText("1 would have a different result").waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("All workers use the change within two seconds").first().waitFor();
  const channel = await console.gateway.api<{ events: object[] }>("GET", `/apps/${app.id}/channels/orders`);
  expect(channel.events[0]).not.toHaveProperty("schema.required");
});

it("the definitions editor keeps a path that is turned off, and turns it on and off", async () => {
  const app = await installApp(console.gateway, [
    { uid: "hooks", kind: "webhook", config: { preset: "stripe" }, events: [] },
  ]);
  const path = `/apps/${app.id}/channels/hooks`;
  const read = async () => (await console.gateway.api<{ events: object[] }>("GET", path)).events;
  expect(await read()).toEqual([{ type: "received", typePath: null }]);
  await using opened = await console.open(`${path}/definitions`);
  const { page } = opened;
  const typePath = page.getByRole("textbox", { name: "Type path" });
  const off = page.getByRole("checkbox", { name: "Turn off Type path" });
  const isSaved = (events: object[]) => expect.poll(read).toEqual(events);
  await off.waitFor();
  expect([await off.isChecked(), await typePath.isDisabled()]).toEqual([true, true]);
  await page.getByLabel("Payload path").fill("$.data");
  await page.getByRole("button", { name: "Save" }).click();
  await isSaved([{ type: "received", typePath: null, payloadPath: "$.data" }]);
  await off.uncheck();
  await typePath.fill("$.type");
  await page.getByRole("button", { name: "Save" }).click();
  await isSaved([{ type: "received", payloadPath: "$.data", typePath: "$.type" }]);
  await off.check();
  await page.getByRole("button", { name: "Save" }).click();
  await isSaved([{ type: "received", payloadPath: "$.data", typePath: null }]);
});

it("the definitions editor keeps an edit that the user makes while the saved definitions are loaded again", async () => {
  const app = await installApp(console.gateway, [
    { uid: "orders", kind: "webhook", events: [{ type: "t" }] },
  ]);
  const path = `/apps/${app.id}/channels/orders`;
  await using opened = await console.open(`${path}/definitions`);
  const { page } = opened;
  const save = page.getByRole("button", { name: "Save" });
  await page.getByLabel("Id path").fill("$.id");
  const held = Promise.withResolvers<void>();
  await page.route(`**/v1${path}`, async (route) => {
    if (route.request().method() === "GET") await held.promise;
    await route.continue();
  });
  await save.click();
  await page.getByText("All workers use the change within two seconds").first().waitFor();
  await page.getByLabel("Payload path").fill("$.data");
  expect(await save.isDisabled()).toBe(true);
  held.resolve();
  await save.click();
  const read = async () => (await console.gateway.api<{ events: object[] }>("GET", path)).events;
  await expect.poll(read).toEqual([{ type: "t", idPath: "$.id", payloadPath: "$.data" }]);
});

it("a definition's form stays open when its error is fixed, and drops the errors of a failed save when it is edited", async () => {
  const types = ["first", "second", "third", "fourth"];
  const app = await installApp(console.gateway, [
    { uid: "orders", kind: "webhook", events: types.map((type) => ({ type })) },
  ]);
  await using opened = await console.open(`/apps/${app.id}/channels/orders/definitions`);
  const { page, complaints } = opened;
  const form = page.locator(".definition-form").nth(1);
  const error = form.locator(".field-error");
  await form.locator("summary").first().click();
  const idPath = form.getByLabel("Id path");
  await idPath.fill("$.[");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").first().waitFor();
  await error.waitFor();
  await idPath.fill("$.id");
  await error.waitFor({ state: "detached" });
  await expect.poll(() => form.getByText("invalid", { exact: true }).count()).toBe(0);
  await expect.poll(() => idPath.isVisible()).toBe(true);
  // The browser logs the error responses of the save and of the preview.
  complaints.splice(0, complaints.length, ...complaints.filter((one) => !/status of 400/.test(one)));
});

it("the definitions editor takes a path from a clicked field of a recorded delivery", async () => {
  const app = await installApp(console.gateway, [
    { uid: "orders", kind: "webhook", events: [{ type: "order", typePath: "$.kind" }] },
  ]);
  const sent = await post(app.channels[0]?.url ?? "", {
    type: "order",
    order: { "line items": [{ id: 7 }] },
  });
  expect(sent.body).toMatchObject({ quarantined: 1 });
  await untilRecorded(console.gateway, app.id);
  await using opened = await console.open(`/apps/${app.id}/channels/orders/definitions`);
  const { page } = opened;
  await page.getByLabel("Type path").focus();
  await page.getByRole("list", { name: "Previewed deliveries" }).getByText("no_match").click();
  const fields = page.getByRole("region", { name: "Fields of the delivery" });
  await fields.getByTitle("$.type", { exact: true }).click();
  await expect.poll(() => page.getByLabel("Type path").inputValue()).toBe("$.type");
  await page.getByText("1 would have a different result").waitFor();
  await fields.getByLabel("Click a field to use its path as").selectOption("payloadPath");
  await fields.getByTitle("$.order['line items'][0]", { exact: true }).click();
  await expect.poll(() => page.getByLabel("Payload path").inputValue()).toBe("$.order['line items'][0]");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("All workers use the change within two seconds").first().waitFor();
  expect(await console.gateway.api("GET", `/apps/${app.id}/channels/orders`)).toMatchObject({
    events: [{ type: "order", typePath: "$.type", payloadPath: "$.order['line items'][0]" }],
  });
});

it("the definitions editor shows an invalid path at its field in the form, and at its line in the JSON", async () => {
  const app = await installApp(console.gateway, [
    { uid: "orders", kind: "webhook", events: [{ type: "first" }, { type: "second" }] },
  ]);
  await using opened = await console.open(`/apps/${app.id}/channels/orders/definitions`);
  const { page, complaints } = opened;
  await page.getByLabel("Id path").nth(1).fill("$.[");
  const error = page.locator(".definition-form").nth(1).locator(".field-error");
  await error.waitFor();
  await expect.poll(() => page.getByLabel("Id path").nth(1).getAttribute("aria-invalid")).toBe("true");
  await expect.poll(() => page.locator(".definition-form").nth(0).locator(".field-error").count()).toBe(0);
  await page.getByRole("button", { name: "JSON", exact: true }).click();
  const marked = page.locator(".editor .cm-lintRange-error");
  await marked.waitFor();
  await expect.poll(() => marked.textContent()).toBe('"$.["');
  // The browser logs the error responses of the preview.
  complaints.splice(0, complaints.length, ...complaints.filter((one) => !/status of 400/.test(one)));
});

it("the definitions editor creates a schema from events, shows what fails today, and saves it", async () => {
  const definition = { type: "order", typePath: "$.type", payloadPath: "$.order" };
  const app = await installApp(console.gateway, [
    {
      uid: "orders",
      kind: "webhook",
      events: [{ ...definition, schema: { properties: { total: { type: "integer" } } } }],
    },
  ]);
  for (const total of [1, 2, 2.5]) {
    const sent = await post(app.channels[0]?.url ?? "", {
      type: "order",
      order: { total, name: "Ada", lines: { li_90210: { price: total } } },
    });
    expect(sent.status).toBe(200);
  }
  const path = `/apps/${app.id}/channels/orders/definitions`;
  const open = async (page: Page) => {
    await page.getByLabel("Type path").waitFor();
    await page.getByRole("button", { name: "Create schema from events" }).click();
    await page.getByRole("dialog").getByText("must be integer").waitFor();
  };
  await lookAt(console, { name: "infer", path, ready: open });
  await using opened = await console.open(path);
  const { page } = opened;
  await open(page);
  const shown = await page.getByRole("dialog").textContent();
  expect(shown).toContain("additionalProperties");
  expect(shown).toContain("other type breaking");
  expect(shown).toContain("new field info");
  expect(shown).not.toMatch(/Ada|90210/);
  await page.getByRole("button", { name: "Apply to the editor" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("All workers use the change within two seconds").first().waitFor();
  const channel = await console.gateway.api<{ events: object[] }>("GET", `/apps/${app.id}/channels/orders`);
  expect(channel.events[0]).toMatchObject({
    ...definition,
    schema: { properties: { total: { type: "number" } }, required: ["total", "name", "lines"] },
  });
  await page.getByRole("button", { name: "Schema versions" }).click();
  const versions = page.getByRole("dialog").getByLabel("Event type and version");
  await versions.waitFor();
  await expect
    .poll(() => versions.locator("option").allTextContents())
    .toEqual(["order, version 1", "order, version 2 (current)"]);
  await page.getByRole("dialog").getByText('"integer"').waitFor();
  await page.getByRole("button", { name: "Apply to the editor" }).click();
  await expect.poll(() => page.getByRole("button", { name: "Save" }).isEnabled()).toBe(true);
});

it("the channel view pauses and resumes a channel, creates a new address, and changes a setting", async () => {
  const app = await installApp(console.gateway, [{ uid: "hooks", kind: "webhook", events: [{ type: "t" }] }]);
  await using opened = await console.open(`/apps/${app.id}/channels?channel=hooks`);
  const { page } = opened;
  const detail = page.getByRole("complementary", { name: "hooks" });
  await detail.getByRole("button", { name: "Pause" }).click();
  await detail.getByRole("button", { name: "Resume" }).click();
  await detail.getByRole("button", { name: "Pause" }).waitFor();
  const before = await detail.getByRole("figure", { name: "address" }).textContent();
  await detail.getByRole("button", { name: "New address" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
  await expect.poll(() => detail.getByRole("figure", { name: "address" }).textContent()).not.toBe(before);
  await detail.getByRole("button", { name: "Settings", exact: true }).click();
  const settings = page.getByRole("dialog", { name: "Settings of hooks" });
  await settings.locator("summary", { hasText: "more" }).first().click();
  await settings.getByLabel(/expect every seconds/i).fill("60");
  await settings.getByRole("button", { name: "Save" }).click();
  await settings.waitFor({ state: "detached" });
  const channel = await console.gateway.api<{ config: object }>("GET", `/apps/${app.id}/channels/hooks`);
  expect(channel.config).toMatchObject({ expectEverySeconds: 60 });
});

it("the settings of a webhook channel offer the polling channels of its app to wake, and the source shows the last wake", async () => {
  const config = {
    run: "always",
    request: { url: "http://127.0.0.1:9/items" },
    schedule: { intervalSeconds: 86_400 },
    discriminator: { by: "seenSet" },
    itemId: "$.id",
  };
  const app = await installApp(console.gateway, [
    { uid: "bell", kind: "webhook" },
    { uid: "items", kind: "polling", config, events: [{ type: "item" }] },
  ]);
  await using opened = await console.open(`/apps/${app.id}/channels?channel=bell`);
  const { page } = opened;
  const detail = page.getByRole("complementary", { name: "bell" });
  await detail.getByRole("button", { name: "Settings", exact: true }).click();
  const settings = page.getByRole("dialog", { name: "Settings of bell" });
  await settings.locator("summary", { hasText: "more" }).first().click();
  await settings.getByLabel("items", { exact: true }).check();
  await settings.getByRole("button", { name: "Save" }).click();
  await settings.waitFor({ state: "detached" });
  const path = `/apps/${app.id}/channels/bell`;
  expect((await console.gateway.api<{ config: object }>("GET", path)).config).toMatchObject({
    wakes: ["items"],
  });
  // The gateway uses the change within two seconds.
  const ring = () => post(`${console.gateway.origin}/hooks/${app.channels[0]?.id}`, "{}");
  await expect.poll(async () => (await ring()).body.woken).toEqual(["items"]);
  await using sources = await console.open(`/apps/${app.id}/sources?channel=items`);
  await sources.page.getByText("Last wake", { exact: true }).waitFor();
  await sources.page.getByText(/ · \d+ in total/).waitFor();
});

it("the setup views are accessible and fit the window, in both themes and two window sizes", async () => {
  await lookAt(console, {
    name: "start",
    path: "/start",
    ready: (page) => page.getByRole("button", { name: "Stripe", exact: true }).locator("svg").waitFor(),
  });
  await lookAt(console, {
    name: "start-webhook",
    path: "/start?way=webhook",
    ready: (page) => page.getByLabel("Sample body").fill('{"type": "order.created", "id": 1}'),
  });
  await lookAt(console, {
    name: "start-channel",
    path: "/start?preset=stripe",
    ready: (page) => page.getByRole("button", { name: "Create the channel" }).waitFor(),
  });
  await lookAt(console, {
    name: "start-stream",
    path: "/start?preset=github",
    ready: async (page) => {
      await page.getByRole("radio", { name: /^Poll/ }).check();
      await page.getByLabel("How events arrive").selectOption("issues");
      await page.getByLabel("Connection").waitFor();
    },
  });
  const app = await installApp(console.gateway, [{ uid: "hooks", kind: "webhook", events: [{ type: "t" }] }]);
  await lookAt(console, {
    name: "channels",
    path: `/apps/${app.id}/channels?channel=hooks`,
    ready: (page) => page.getByRole("button", { name: "New address" }).waitFor(),
  });
  await lookAt(console, {
    name: "definitions",
    path: `/apps/${app.id}/channels/hooks/definitions`,
    ready: async (page) => {
      await page.getByLabel("Type path").waitFor();
      await page.getByRole("button", { name: "Pasted body" }).click();
      await page.getByLabel("Body of a delivery").fill('{"type":"t","order":{"id":7,"lines":[{"price":1}]}}');
      await page.getByRole("button", { name: "price" }).waitFor();
    },
  });
  await lookAt(console, {
    name: "definitions-json",
    path: `/apps/${app.id}/channels/hooks/definitions`,
    ready: async (page) => {
      await page.getByRole("button", { name: "JSON", exact: true }).click();
      await page.locator(".editor .cm-editor").waitFor();
      await page.getByText("No recorded delivery has a body").waitFor();
    },
  });
  await lookAt(console, {
    name: "catalog",
    path: `/apps/${app.id}/catalog?event=hooks%3At`,
    ready: (page) => page.getByText("AI agents may subscribe").waitFor(),
  });
});

it("the catalog shows the event types of an app with an example, and offers a type to agents", async () => {
  const app = await installApp(console.gateway, [
    {
      uid: "hooks",
      kind: "webhook",
      config: { preset: "github" },
      events: [{ type: "push", schema: { required: ["ref"] } }, { type: "issues" }],
    },
  ]);
  await using opened = await console.open(`/apps/${app.id}/catalog`);
  const { page } = opened;
  await page.getByRole("row", { name: /push/ }).click();
  await page.getByText("Example from the provider's sample").waitFor();
  await page.getByText("refs/heads/main").waitFor();
  await page.getByRole("checkbox", { name: "AI agents may subscribe to this type" }).click();
  await page.getByText("Agents may subscribe to this type.").first().waitFor();
  const channel = await console.gateway.api<{ events: object[] }>("GET", `/apps/${app.id}/channels/hooks`);
  expect(channel.events).toMatchObject([{ type: "push", agents: true }, { type: "issues" }]);
  await page.getByRole("row", { name: /push.*agents/ }).waitFor();
  await page.getByText("TypeScript types").click();
  await page.getByText(`/apps/${app.id}/types.ts`).waitFor();
});

it("the agents page shows the subscriptions of agents without the path of their callback URL, and ends one", async () => {
  await using callbacks = await startCallbackServer();
  const app = await installApp(console.gateway, [
    { uid: "hooks", kind: "webhook", events: [{ type: "push", agents: true }] },
  ]);
  const client = await connectAgent(console.gateway);
  const delivery = {
    mode: "webhook",
    url: callbacks.urlOf("/secret-path"),
    secret: `whsec_${Buffer.alloc(32, 1).toString("base64")}`,
  };
  const filter = { properties: { data: { required: ["ref"] } } };
  const name = `${app.id}.hooks.push`;
  await client.request(
    { method: "events/subscribe", params: { name, delivery, arguments: { filter } } },
    z.looseObject({}),
  );
  const [subscription] = await console.gateway.api<{ id: string }[]>(
    "GET",
    `/apps/${app.id}/agent-subscriptions`,
  );
  await lookAt(console, {
    name: "agents",
    path: `/apps/${app.id}/agents?id=${subscription?.id}`,
    ready: (page) => page.getByRole("button", { name: "End" }).waitFor(),
  });
  await using opened = await console.open(`/apps/${app.id}/agents`);
  const { page } = opened;
  await page.getByRole("row", { name: /hooks.push/ }).click();
  await page.getByRole("complementary").getByText(callbacks.origin).waitFor();
  expect(await page.content()).not.toContain("secret-path");
  await page.getByRole("button", { name: "End" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End" }).click();
  await page.getByText("No agent subscriptions").first().waitFor();
  expect(await console.gateway.api("GET", `/apps/${app.id}/agent-subscriptions`)).toEqual([]);
});

it("the console creates the intake of a blueprint with the preset's route keys, and sets the keys of an install", async () => {
  const channels = [
    {
      uid: "hooks",
      kind: "webhook",
      config: { preset: "slack" },
      events: [{ type: "message", typePath: null }],
    },
  ];
  const app = await installApp(console.gateway, channels);
  const { blueprintId } = await console.gateway.api<{ blueprintId: string }>("GET", `/apps/${app.id}`);
  await using opened = await console.open(`/blueprints?id=${blueprintId}`);
  const { page, complaints } = opened;
  await page.getByRole("link", { name: "Intake" }).click();
  await page.getByRole("button", { name: "Create an intake" }).click();
  const dialog = page.getByRole("dialog");
  const paths = dialog.getByLabel("Route key, one path per line");
  await paths.waitFor();
  await expect.poll(() => paths.inputValue()).toBe("$.authorizations[0].team_id\n$.team_id");
  await dialog.getByLabel("Signing secret").fill("8f742231b10e8888abcd99yyyzzz85a5");
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("active", { exact: true }).waitFor();
  await expect
    .poll(() => page.getByRole("figure", { name: "address" }).textContent())
    .toContain("/hooks/ch_");
  await page.getByRole("row").filter({ hasText: app.id }).click();
  await dialog.getByLabel("Route keys, one per line").fill("T061EG9R6\nT2");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row").filter({ hasText: "T061EG9R6, T2" }).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("definition").getByText("paused", { exact: true }).waitFor();
  const intake = await console.gateway.api("GET", `/blueprints/${blueprintId}/intake`);
  expect(intake).toMatchObject({ channel: "hooks", state: "paused", config: { preset: "slack" } });
  // The browser logs the response to the question whether the blueprint has an intake.
  complaints.splice(0, complaints.length, ...complaints.filter((one) => !one.includes("404")));
  await lookAt(console, {
    name: "intake",
    path: `/blueprints/${blueprintId}/intake`,
    ready: (shown) => shown.getByText("T061EG9R6, T2").waitFor(),
  });
});

it("the console shows, deletes and redrives the items that an intake holds", async () => {
  const intake = await createIntake(console.gateway);
  const install = await (await intake.addOrganization("Acme")).install();
  await intake.setKeys(install, ["A"]);
  const { blueprintId } = intake;
  const path = `/blueprints/${blueprintId}`;
  for (const id of ["first", "second"]) await intake.send({ events: [{ id, squad: "A" }] });
  await intake.send({ events: [{ id: "third", team: "B" }] });
  await console.gateway.api("POST", `${path}/intake/pause`);
  await expect
    .poll(async () => {
      await intake.send({ events: [{ id: "fourth", team: "A" }] });
      return console.gateway.api("GET", `${path}/quarantine?reason=paused`);
    })
    .not.toEqual([]);
  await using opened = await console.open(`${path}/intake`);
  const { page, complaints } = opened;
  const panel = page.getByRole("complementary", { name: "Held item" });
  await page.getByRole("row").filter({ hasText: "paused" }).first().click();
  await panel.getByText("you cannot read it").waitFor();
  expect(complaints.splice(0)).toEqual([expect.stringContaining("409")]);
  await page.getByLabel("Reason").selectOption("no_route");
  await page.getByRole("row").filter({ hasText: "no_route" }).first().click();
  await panel.getByText('"squad"').first().waitFor();
  await lookAt(console, {
    name: "intake-item",
    path: `${path}/intake`,
    async ready(shown) {
      await shown.getByRole("row").filter({ hasText: "no_route" }).first().click();
      await shown.getByRole("complementary", { name: "Held item" }).getByText('"squad"').first().waitFor();
    },
  });
  await panel.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await panel.waitFor({ state: "detached" });
  await console.gateway.api("PUT", `${path}/intake`, { routeBy: ["$.team", "$.squad"] });
  await page.getByRole("button", { name: "Redrive all 1" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Redrive 1" }).click();
  await expect.poll(() => dialog.textContent()).toContain("released1");
  await page.keyboard.press("Escape");
  await page.getByText("No held items with this reason").waitFor();
  await expect
    .poll(() => install.call("GET", `/apps/${install.appId}/events`))
    .toEqual([expect.objectContaining({ id: "second" })]);
});

it("the console explains how an intake routes a delivery, and sends test events through it", async () => {
  const intake = await createIntake(console.gateway);
  const own = await console.gateway.api<{ readonly id: string }>("POST", "/apps/install", {
    blueprintId: intake.blueprintId,
  });
  await intake.setKeys({ appId: own.id }, ["A"]);
  const path = `/blueprints/${intake.blueprintId}/intake`;
  const body = '{"events": [{"id": "tried", "team": "A"}, {"id": "other", "team": "B"}]}';
  const fill = async (shown: Page) => {
    await shown.getByRole("textbox", { name: /^Body/ }).fill(body);
    await shown.getByRole("button", { name: "Explain" }).click();
    await shown.getByRole("listitem").filter({ hasText: "Item 1" }).getByText("no_install").waitFor();
  };
  await using opened = await console.open(path);
  const { page } = opened;
  await fill(page);
  const routed = page.getByRole("listitem").filter({ hasText: "Item 0" });
  await expect.poll(() => routed.textContent()).toContain(`routedA→ ${own.id}$.team→A`);
  await lookAt(console, { name: "intake-try", path, ready: fill });
  await page.getByLabel(/Route key of the test event/).fill("A");
  await page.getByRole("button", { name: "Send test event" }).click();
  await page.getByText("2 published").waitFor();
  const events = await console.gateway.api<readonly { readonly id: string }[]>(
    "GET",
    `/apps/${own.id}/events`,
  );
  expect(events.map(({ id }) => id).toSorted()).toEqual(["other", "tried"]);
  await page.getByLabel(/Route key paths to try/).fill("$.squad");
  await page.getByLabel("Verify the signature when explaining").check();
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText("The signature is rejected").waitFor();
  await page.getByLabel("Verify the signature when explaining").uncheck();
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByRole("listitem").filter({ hasText: "Item 0" }).getByText("no_route").waitFor();
});
