import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { InstalledApp } from "../support/channels.ts";
import { createTestStores, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { API_KEY, PROGRAM_ENV } from "../support/gateway-process.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const dir = mkdtempSync(join(tmpdir(), "inlet-export-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const SECRETS = { SECRET_STRIPE: "the secret of stripe", SECRET_SHOP_EU_ORDERS: "the secret of the orders" };

async function inlet(args: readonly string[], env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...PROGRAM_ENV, INLET_API_KEY: API_KEY, XDG_CONFIG_HOME: dir, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].on("data", (chunk: Buffer) => {
      written[name] += chunk;
    });
  const [code] = await once(child, "close");
  return { code, ...written };
}

/** Creates apps with and without a blueprint, in two spaces, with secrets and with settings that differ from their blueprint. */
async function fill({ api }: TestGateway): Promise<void> {
  const stripe = {
    uid: "stripe",
    kind: "webhook",
    title: "Stripe",
    config: { preset: "stripe" },
    events: [],
  };
  const { id: stripeId } = await api<{ id: string }>("POST", "/blueprints", {
    uid: "stripe",
    title: "Stripe",
    channels: [stripe],
  });
  const secrets = [{ value: SECRETS.SECRET_STRIPE }];
  await api("POST", "/apps/install", { blueprintId: stripeId, channels: { stripe: { secrets } } });

  const shop = [
    {
      uid: "orders",
      kind: "webhook",
      config: { preset: "github" },
      events: [{ type: "push" }, { type: "issues" }],
    },
    {
      uid: "ticks",
      kind: "sse",
      config: { url: "https://example.com/ticks", run: "always", reconnect: { maxMs: 5_000 } },
      events: [{ type: "tick", typePath: "$event" }],
    },
  ];
  const { id: shopId } = await api<{ id: string }>("POST", "/blueprints", {
    uid: "shop",
    title: "Shop",
    description: "Orders and ticks",
    channels: shop,
  });
  const { id: spaceId } = await api<{ id: string }>("POST", "/spaces", { name: "europe" });
  const app = await api<InstalledApp>("POST", "/apps/install", {
    blueprintId: shopId,
    uid: "shop.eu",
    title: "Shop of Europe",
    spaceId,
    channels: { orders: { secrets: [{ value: SECRETS.SECRET_SHOP_EU_ORDERS }] } },
  });
  await api("PUT", `/apps/${app.id}/channels/orders`, { config: { limits: { maxBodyBytes: 7_000 } } });
  await api("POST", `/apps/${app.id}/channels`, {
    uid: "list",
    kind: "polling",
    config: {
      request: { url: "https://example.com/list", query: { page: "1" } },
      schedule: { intervalSeconds: 3_600 },
      discriminator: { by: "seenSet" },
    },
    events: [{ type: "item", schema: { type: "object" } }],
  });
}

it("`inlet export` prints a file that changes nothing on its gateway, and makes the same on an empty one", async () => {
  await using stores = await createTestStores();
  await using gateway = await startTestGateway(stores.env);
  await fill(gateway);
  const exported = await inlet(["export"], { INLET_URL: gateway.origin });
  expect(exported).toMatchObject({ code: 0, stderr: expect.stringContaining("SECRET_STRIPE") });
  for (const secret of Object.values(SECRETS)) expect(exported.stdout).not.toContain(secret);
  const file = join(dir, "setup.json");
  writeFileSync(file, exported.stdout);

  const [organization] = JSON.parse(exported.stdout).organizations;
  expect(organization.blueprints).toEqual(
    expect.arrayContaining([
      {
        uid: "stripe",
        title: "Stripe",
        channels: [{ uid: "stripe", kind: "webhook", title: "Stripe", config: { preset: "stripe" } }],
      },
    ]),
  );
  expect(organization.apps).toEqual(
    expect.arrayContaining([
      {
        uid: "stripe",
        blueprint: "stripe",
        channels: [{ uid: "stripe", config: { secrets: [{ value: { $env: "SECRET_STRIPE" } }] } }],
      },
    ]),
  );

  const same = await inlet(["plan", "-f", file], { ...stores.env, ...SECRETS });
  expect(same).toMatchObject({ code: 0, stdout: expect.stringContaining(" 0 update") });
  expect(same.stdout).toMatch(/^0 create, 0 update, \d+ unchanged, 0 unmanaged$/m);

  await using empty = await createTestStores();
  const applied = await inlet(["apply", "-f", file], { ...empty.env, ...SECRETS });
  expect({ code: applied.code, stderr: applied.stderr }).toMatchObject({ code: 0 });
  await using copy = await startTestGateway(empty.env);
  const again = await inlet(["export"], { INLET_URL: copy.origin });
  expect(sorted(again.stdout)).toEqual(sorted(exported.stdout));

  const one = await inlet(["export", "stripe"], { INLET_URL: gateway.origin });
  expect(JSON.parse(one.stdout).organizations[0]).toMatchObject({
    blueprints: [{ uid: "stripe" }],
    apps: [{ uid: "stripe" }],
  });
});

it("`inlet export` contains the named secrets that a channel has, and names the connection of a registration", async () => {
  const hooksUrl = { INLET_HOOKS_URL: "https://hooks.example.com" };
  await using stores = await createTestStores();
  await using gateway = await startTestGateway({ ...stores.env, ...hooksUrl });
  const { api } = gateway;
  const install = async (preset: string, config: object): Promise<void> => {
    const channels = [{ uid: preset, kind: "webhook", config: { preset } }];
    const { id: blueprintId } = await api<{ id: string }>("POST", "/blueprints", {
      uid: preset,
      title: preset,
      channels,
    });
    await api("POST", "/apps/install", { blueprintId, channels: { [preset]: config } });
  };
  const secrets = [{ value: "a secret" }, { name: "verifyToken", value: "a token" }];
  await install("whatsapp", { secrets });
  await install("facebook", { secrets: [{ value: "a third secret" }] });
  const { id: connectionId } = await api<{ id: string }>("POST", "/connections", {
    name: "GitHub",
    kind: "bearer",
    config: { token: "t-0123456789" },
    allowedOrigins: ["https://api.github.com"],
  });
  await install("github", { registration: { connectionId, params: { owner: "acme", repo: "shop" } } });

  const exported = await inlet(["export"], { INLET_URL: gateway.origin });
  expect(exported.stderr).toContain(
    `The connection ${connectionId} of the registration of the channel github`,
  );
  const file = join(dir, "named.json");
  writeFileSync(file, exported.stdout);
  expect(exported.stderr).toContain("SECRET_FACEBOOK");
  expect(exported.stderr).not.toContain("SECRET_FACEBOOK_");
  const variables = {
    SECRET_WHATSAPP: "a secret",
    SECRET_WHATSAPP_VERIFYTOKEN: "a token",
    SECRET_FACEBOOK: "a third secret",
  };
  const same = await inlet(["plan", "-f", file], { ...stores.env, ...hooksUrl, ...variables });
  expect(same.stdout).toMatch(/^0 create, 0 update, \d+ unchanged, 0 unmanaged$/m);
});

it("`inlet export` names each secret once, and reports apps that one file cannot contain", async () => {
  await using stores = await createTestStores();
  await using gateway = await startTestGateway(stores.env);
  const { api } = gateway;
  const { id: spaceId } = await api<{ id: string }>("POST", "/spaces", { name: "europe" });
  const { id: blueprintId } = await api<{ id: string }>("POST", "/blueprints", {
    uid: "stripe",
    title: "Stripe",
    channels: [{ uid: "stripe", kind: "webhook", config: { preset: "stripe" } }],
  });
  const install = (value: string, settings: object) =>
    api<InstalledApp>("POST", "/apps/install", {
      blueprintId,
      channels: { stripe: { secrets: [{ value }] } },
      ...settings,
    });
  await install("first", {});
  await install("second", {});
  await install("third", { spaceId });
  await install("fourth", { uid: "a.b" });
  await install("fifth", { uid: "a-b" });

  const exported = await inlet(["export"], { INLET_URL: gateway.origin });
  const references = [...exported.stdout.matchAll(/"\$env": "(\w+)"/g)].map(([, name = ""]) => name);
  expect(references.toSorted()).toEqual([
    "SECRET_A_B_STRIPE",
    "SECRET_DEFAULT_A_B_STRIPE",
    expect.stringMatching(/^SECRET_(DEFAULT|EUROPE)_STRIPE$/),
    "SECRET_STRIPE",
  ]);
  expect(exported.stderr).toMatch(
    /^Not in the file: The app app_\w+, because another app of the space default has the uid stripe\.$/m,
  );
  const file = join(dir, "same-uids.json");
  writeFileSync(file, exported.stdout);
  await using empty = await createTestStores();
  const secrets = Object.fromEntries(references.map((name) => [name, `the value of ${name}`]));
  const applied = await inlet(["apply", "-f", file], { ...empty.env, ...secrets });
  expect({ code: applied.code, stderr: applied.stderr }).toMatchObject({ code: 0 });
});

/** Returns the organization of a file, with its lists in a fixed order. */
function sorted(text: string) {
  const [organization] = JSON.parse(text).organizations;
  const byUid = (one: { readonly uid: string }, other: { readonly uid: string }) =>
    one.uid.localeCompare(other.uid);
  organization.blueprints.sort(byUid);
  organization.apps.sort(byUid);
  for (const { channels = [] } of organization.apps) channels.sort(byUid);
  organization.spaces.sort((one: { name: string }, other: { name: string }) =>
    one.name.localeCompare(other.name),
  );
  return organization;
}
