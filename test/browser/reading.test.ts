import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type InstalledApp, installApp } from "../support/channels.ts";
import { lookAt, startTestConsole, type TestConsole } from "../support/console.ts";
import { deliver } from "../support/deliver.ts";

let console: TestConsole;
let app: InstalledApp;
/** Serves the list that the source polls. Also receives the subscription's events, and rejects them unless `isAccepting`. */
let server: Server;
let items: number[];
let isAccepting: boolean;
let accepted: string[];

beforeAll(async () => {
  items = [1, 2, 3];
  isAccepting = true;
  accepted = [];
  server = createServer((request, response) => {
    if (request.method === "POST") {
      if (isAccepting) accepted.push(String(request.headers["ce-id"]));
      response.writeHead(isAccepting ? 204 : 500).end();
      return;
    }
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(items.map((seq) => ({ id: `i${seq}`, seq, kind: "made" }))));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  console = await startTestConsole({ INLET_ALLOW_NETWORKS: "127.0.0.0/8" });
  app = await installApp(console.gateway, [
    { uid: "hooks", kind: "webhook", events: [{ type: "order" }] },
    {
      uid: "list",
      kind: "polling",
      config: {
        run: "always",
        startAt: "earliest",
        request: { url: origin() },
        schedule: { intervalSeconds: 3600 },
        itemId: "$.id",
        itemsPath: "$",
        discriminator: { by: "sequence", path: "$.seq" },
      },
      events: [{ type: "made", typePath: "$.kind" }],
    },
  ]);
});
afterAll(async () => {
  await console?.[Symbol.asyncDispose]();
  server?.close();
});

const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
const send = (body: object) => deliver(app.channels[0]?.url ?? "", body);

it("a dry run of a source shows which items are new after a given cursor, and the source's cursor can be moved", async () => {
  await using opened = await console.open(`/apps/${app.id}/sources`);
  const { page } = opened;
  await page.getByRole("gridcell", { name: "list" }).click();
  const detail = page.getByRole("complementary", { name: "list" });
  await detail.getByText("i3").or(detail.getByText('"3"')).first().waitFor();
  await detail.getByRole("button", { name: "Dry run" }).click();
  const dryRun = page.getByRole("dialog", { name: "Dry run" });
  await dryRun.getByLabel("From this cursor").fill('{"sequence": "1"}');
  await dryRun.getByRole("button", { name: "Run", exact: true }).click();
  await dryRun.getByText("New items").waitFor();
  await expect.poll(() => dryRun.getByRole("status").textContent()).toMatch(/New items2/);
  await page.keyboard.press("Escape");
  await detail.getByRole("button", { name: "Move the cursor" }).click();
  const move = page.getByRole("dialog", { name: "Move the cursor" });
  await move.getByLabel("Cursor", { exact: true }).fill('{"sequence": "1"}');
  await move.getByRole("button", { name: "Move", exact: true }).click();
  await move.waitFor({ state: "detached" });
  const audit = await console.gateway.api<object[]>("GET", "/audit?limit=50");
  expect(JSON.stringify(audit)).toContain("cursor");
});

it("the console creates a subscription, shows its secret once, shows a failed delivery to its handler, and replays events", async () => {
  await using opened = await console.open(`/apps/${app.id}/subscriptions`);
  const { page } = opened;
  await page.getByText("No subscriptions yet").waitFor();
  await page.getByRole("button", { name: "Subscribe" }).click();
  const dialog = page.getByRole("dialog", { name: "Subscribe" });
  await dialog.getByRole("combobox").selectOption("hooks:order");
  await dialog.getByLabel("Send each event to").fill(`${origin()}handler`);
  await dialog.getByLabel("Events per request").fill("5");
  await dialog.getByLabel("Bytes per request").fill("4096");
  await dialog.getByLabel("Wait for more events").fill("10");
  isAccepting = false;
  await dialog.getByRole("button", { name: "Subscribe" }).click();
  const secret = page.getByRole("dialog", { name: "Subscribed" });
  await expect.poll(() => secret.textContent()).toContain("whsec_");
  await secret.getByRole("button", { name: "I have saved it" }).click();
  await send({ id: 1 });
  const [made] = await console.gateway.api<{ handler: object }[]>("GET", `/apps/${app.id}/subscriptions`);
  expect(made?.handler).toMatchObject({ batch: { maxEvents: 5, maxBytes: 4_096, maxWaitMs: 10 } });
  const detail = page.getByRole("complementary", { name: "Subscription" });
  await detail.getByText("up to 5, ").waitFor();
  await detail.getByText("500", { exact: false }).first().waitFor();
  isAccepting = true;
  await expect.poll(() => accepted.length).toBeGreaterThan(0);
  const before = accepted.length;
  await detail.getByRole("button", { name: "Replay" }).click();
  const replay = page.getByRole("dialog", { name: "Replay to this handler" });
  await replay.getByText("events are in this range").waitFor();
  await replay.getByRole("button", { name: /^Replay/ }).click();
  await expect.poll(() => accepted.length).toBeGreaterThan(before);
});

it("the views of sources and subscriptions are accessible and fit the window, in both themes and two window sizes", async () => {
  const subscriptions = await console.gateway.api<{ id: string }[]>("GET", `/apps/${app.id}/subscriptions`);
  await lookAt(console, {
    name: "sources",
    path: `/apps/${app.id}/sources?channel=list`,
    ready: (page) => page.getByRole("complementary", { name: "list" }).waitFor(),
  });
  await lookAt(console, {
    name: "subscriptions",
    path: `/apps/${app.id}/subscriptions?subscription=${subscriptions[0]?.id}`,
    ready: (page) => page.getByRole("button", { name: "Rewind" }).waitFor(),
  });
});
