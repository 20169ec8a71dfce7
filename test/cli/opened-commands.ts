import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { installApp } from "../support/channels.ts";
import { type CommandOptions, runInlet } from "../support/command.ts";
import { deliver } from "../support/deliver.ts";
import { createTestStores, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { opened } from "../support/opened.ts";

/** Opens a gateway for a test file, and runs CLI commands against it with their own config folder. */
export function openedCommands() {
  const dir = mkdtempSync(join(tmpdir(), "inlet-cli-"));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  const world = opened(() => openWorld(dir));

  const run = (line: string, options: CommandOptions = {}) =>
    runInlet(line.split(" "), { ...options, env: { ...world.env, ...options.env } });

  const post = (uid: string, body: string) => deliver(world.addressOf(uid), body);

  return { dir, world, run, post };
}

export const rows = (stdout: string) =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

/** Address at which no server listens. */
export const NOBODY = "http://127.0.0.1:1";

/** Creates an app with a JSON channel, a channel whose definitions never match, and a polling channel. */
async function openWorld(dir: string) {
  await using opening = new AsyncDisposableStack();
  const stores = opening.use(await createTestStores());
  const handlers = opening.use(await startHandlerServer());
  const env = { ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.1/32" };
  const gateway: TestGateway = opening.use(await startTestGateway(env));
  const app = await installApp(gateway, [
    { uid: "inbox", kind: "webhook", config: {}, events: [{ type: "received" }] },
    {
      uid: "strict",
      kind: "webhook",
      config: { onNoMatch: "quarantine" },
      events: [
        { type: "a", typePath: "$.type", when: { properties: { item: { not: { required: ["draft"] } } } } },
      ],
    },
    {
      uid: "hooks",
      kind: "webhook",
      config: { preset: "github" },
      events: [{ type: "push" }, { type: "issues" }],
    },
    { uid: "sms", kind: "webhook", config: { preset: "telnyx" }, events: [{ type: "x" }] },
    {
      uid: "orders",
      kind: "polling",
      config: {
        request: { url: NOBODY },
        schedule: { intervalSeconds: 3600 },
        discriminator: { by: "timestamp", path: "$.at" },
      },
      events: [{ type: "order" }],
    },
  ]);
  await gateway.api("PUT", `/apps/${app.id}/channels/hooks`, { config: { secrets: [{ value: "s3cret" }] } });
  const addressOf = (uid: string): string => app.channels.find((channel) => channel.uid === uid)?.url ?? "";
  const subscription = await gateway.api<{ id: string }>("POST", `/apps/${app.id}/events/subscribe`, {
    eventUid: "inbox:*",
    handler: { url: handlers.urlOf("/events") },
  });
  const owned = opening.move();
  return {
    gateway,
    app,
    addressOf,
    subscription,
    env: { INLET_URL: gateway.origin, INLET_API_KEY: API_KEY, INLET_APP: app.id, XDG_CONFIG_HOME: dir },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
