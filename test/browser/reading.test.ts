import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { lookAt, startTestConsole, type TestConsole } from "../support/console.ts";
import { deliver } from "../support/deliver.ts";
import { type InstalledApp, installApp } from "../support/gateway.ts";

let console: TestConsole;
let app: InstalledApp;
/** A polled server whose list grows, and a handler that refuses what it is told to. */
let server: Server;
let items: number[];
let isTaking: boolean;
let taken: string[];

beforeAll(async () => {
  items = [1, 2, 3];
  isTaking = true;
  taken = [];
  server = createServer((request, response) => {
    if (request.method === "POST") {
      if (isTaking) taken.push(String(request.headers["ce-id"]));
      response.writeHead(isTaking ? 204 : 500).end();
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
const send = (body: object): Promise<Response> => deliver(app.channels[0]?.url ?? "", body);

it("a source's cursor is moved after a dry run has shown what that would fetch", async () => {
  await using opened = await console.open(`/apps/${app.id}/sources`);
  const { page } = opened;
  await page.getByRole("gridcell", { name: "list" }).click();
  const detail = page.getByRole("complementary", { name: "list" });
  await detail.getByText("i3").or(detail.getByText('"3"')).first().waitFor();
  await detail.getByRole("button", { name: "Dry run" }).click();
  const dryRun = page.getByRole("dialog", { name: "Dry run" });
  await dryRun.getByLabel("From this cursor").fill('{"sequence": "1"}');
  await dryRun.getByRole("button", { name: "Ask the server" }).click();
  await dryRun.getByText("New items").waitFor();
  expect(await dryRun.getByRole("status").textContent()).toMatch(/New items2/);
  await page.keyboard.press("Escape");
  await detail.getByRole("button", { name: "Move the cursor" }).click();
  const move = page.getByRole("dialog", { name: "Move the cursor" });
  await move.getByLabel("Cursor", { exact: true }).fill('{"sequence": "1"}');
  await move.getByRole("button", { name: "Move", exact: true }).click();
  await move.waitFor({ state: "detached" });
  const audit = await console.gateway.api<object[]>("GET", "/audit?limit=50");
  expect(JSON.stringify(audit)).toContain("cursor");
});

it("a subscription is made with a handler, its secret shown once; what the handler refused is told, and replayed", async () => {
  await using opened = await console.open(`/apps/${app.id}/subscriptions`);
  const { page } = opened;
  await page.getByText("Nobody reads these events yet").waitFor();
  await page.getByRole("button", { name: "Subscribe" }).click();
  const dialog = page.getByRole("dialog", { name: "Subscribe" });
  await dialog.getByLabel("Events").selectOption("hooks:order");
  await dialog.getByLabel("Send each event to").fill(`${origin()}handler`);
  isTaking = false;
  await dialog.getByRole("button", { name: "Subscribe" }).click();
  const secret = page.getByRole("dialog", { name: "Subscribed" });
  expect(await secret.textContent()).toContain("whsec_");
  await secret.getByRole("button", { name: "I have it" }).click();
  await send({ id: 1 });
  const detail = page.getByRole("complementary", { name: "Subscription" });
  await detail.getByText("500", { exact: false }).first().waitFor();
  isTaking = true;
  await expect.poll(() => taken.length).toBeGreaterThan(0);
  const before = taken.length;
  await detail.getByRole("button", { name: "Replay" }).click();
  const replay = page.getByRole("dialog", { name: "Replay to this handler" });
  await replay
    .getByText("1 events stand in that range")
    .or(replay.getByText("stand in that range"))
    .waitFor();
  await replay.getByRole("button", { name: /^Replay/ }).click();
  await expect.poll(() => taken.length).toBeGreaterThan(before);
});

it("the views look as they should, and hold nothing that keeps people out, in both themes, wide and narrow", async () => {
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
