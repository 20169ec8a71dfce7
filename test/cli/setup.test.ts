import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { channelKinds } from "../../src/channels/kinds.ts";
import { applySetUp, planSetUp } from "../../src/cli/setup/apply.ts";
import { checkSetUp, type WantedOrganization } from "../../src/cli/setup/check.ts";
import { parseSetUp } from "../../src/cli/setup/file.ts";
import { renderSteps } from "../../src/cli/setup/plan.ts";
import { createStoredChannels } from "../../src/data/channels/stored-channels.ts";
import { checkDefinitions } from "../../src/ingest/check-definitions.ts";
import { startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { readPresets } from "../../src/verify/presets.ts";
import { type Caller, createTestApi } from "../support/api.ts";
import { opened } from "../support/opened.ts";

const EXAMPLE = readFileSync(new URL("../../config/examples/github.setup.json", import.meta.url), "utf8");
const SECRET = "the-secret-of-the-example";
const env = { GITHUB_WEBHOOK_SECRET: SECRET };

const schemas = opened(() => startSchemaCompiler());
const api = opened(createTestApi);

const settings = {
  channelKinds,
  presets: readPresets(),
  checkDefinitions: (source: Parameters<typeof checkDefinitions>[1]) =>
    checkDefinitions(schemas, source, new AbortController().signal),
};
const deps = () => ({
  ...settings,
  db: api.database.db,
  keyring: api.keyring,
  clock: Date.now,
  apiKey: undefined,
});

async function check(file: unknown, variables: Record<string, string> = env) {
  const declared = parseSetUp(typeof file === "string" ? file : JSON.stringify(file));
  return declared.ok ? checkSetUp({ ...settings, env: variables }, declared.value) : declared;
}

async function wantedOf(file: unknown, variables = env): Promise<readonly WantedOrganization[]> {
  const checked = await check(file, variables);
  if (!checked.ok) throw new Error(JSON.stringify(checked.error));
  return checked.value;
}

async function apply(file: unknown, variables = env) {
  const keys: string[] = [];
  const report = await applySetUp(deps(), await wantedOf(file, variables), async (organization, token) => {
    if (organization !== "default") keys.push(token);
  });
  return { ...report, keys };
}
const plan = async (file: unknown, variables = env) => planSetUp(deps(), await wantedOf(file, variables));
const actions = ({ steps }: { readonly steps: readonly { readonly action: string }[] }) =>
  steps.map(({ action }) => action);
const changed = (report: Awaited<ReturnType<typeof plan>>) =>
  report.steps.filter(({ action }) => action !== "unchanged");

/** Returns a copy of the example to modify. */
// biome-ignore lint/suspicious/noExplicitAny: a file of any shape
const example = (change: (organization: any) => void = () => {}) => {
  const file = JSON.parse(EXAMPLE);
  change(file.organizations[0]);
  return file;
};

const exampleFor = (name: string, change: Parameters<typeof example>[0] = () => {}) =>
  example((organization) => {
    organization.name = name;
    change(organization);
  });

/** Applies a file that creates one organization. Returns an API client with its first key. */
async function applyNew(file: unknown): Promise<Caller> {
  const { keys } = await apply(file);
  expect(keys).toHaveLength(1);
  return api.as(keys[0] ?? "");
}

async function rows() {
  const { db } = api.database;
  const tables = [
    "organizations",
    "spaces",
    "blueprints",
    "apps",
    "channels",
    "topics",
    "changes",
    "audit",
  ] as const;
  const all: unknown[] = [];
  for (const table of tables) all.push(await db.selectFrom(table).selectAll().execute());
  return all;
}

describe("a config file", () => {
  it("creates the declared objects when it is first applied, and changes nothing when it is applied again", async () => {
    expect(actions(await apply(EXAMPLE)).filter((action) => action === "create")).toHaveLength(5);
    const apps = await api.call.get("/apps");
    expect(apps.map(({ uid }: { uid: string }) => uid).sort()).toEqual(["github", "sensors"]);
    const github = apps.find(({ uid }: { uid: string }) => uid === "github");
    const channels = await api.call.get(`/apps/${github.id}/channels`);
    expect(channels).toMatchObject([{ uid: "hooks", state: "active", title: "Repository webhooks" }]);
    const live = await createStoredChannels({ db: api.database.db, keyring: api.keyring }).findById(
      channels[0].id,
    );
    expect(JSON.stringify(live)).toContain(SECRET);
    expect(await api.call.get("/blueprints")).toMatchObject([{ uid: "github", id: github.blueprintId }]);

    const before = await rows();
    expect(new Set(actions(await apply(EXAMPLE)))).toEqual(new Set(["unchanged"]));
    expect(await rows()).toEqual(before);
  });

  it("is applied exactly as its plan said, and the plan itself writes nothing to the database", async () => {
    const before = await rows();
    const file = exampleFor("planned");
    const planned = await plan(file);
    expect(actions(planned)).toContain("create");
    expect(await rows()).toEqual(before);
    expect((await apply(file)).steps).toEqual(planned.steps);
  });

  it("has a plan that names the changed fields but shows no secret values", async () => {
    await apply(exampleFor("differs"));
    const differs = exampleFor("differs", (organization) => {
      organization.blueprints[0].description = "other";
      organization.blueprints[0].channels[0].config.dedupe = { windowSeconds: 60 };
      organization.apps[1].title = "Other";
    });
    const planned = await plan(differs, { GITHUB_WEBHOOK_SECRET: "a-new-secret" });
    expect(changed(planned)).toEqual([
      { action: "update", object: "blueprint github in differs", fields: ["channels", "description"] },
      {
        action: "update",
        object: "channel hooks of github in differs/default",
        fields: ["config.dedupe", "config.secrets (secret)"],
      },
      { action: "update", object: "app sensors in differs/default", fields: ["title"] },
    ]);
    expect(renderSteps(planned.steps)).not.toMatch(/a-new-secret|the-secret/);
    expect((await apply(differs, { GITHUB_WEBHOOK_SECRET: "a-new-secret" })).steps).toEqual(planned.steps);
    expect(changed(await plan(differs, { GITHUB_WEBHOOK_SECRET: "a-new-secret" }))).toEqual([]);
  });

  it("does not change objects and secrets that it does not declare", async () => {
    const owner = await applyNew(exampleFor("lessens"));
    await owner.post("/blueprints", { uid: "by-hand", title: "By hand" });
    const apps = await owner.get("/apps");
    const github = apps.find(({ uid }: { uid: string }) => uid === "github");
    const path = `/apps/${github.id}/channels`;
    await owner.post(path, { uid: "extra", kind: "webhook" });
    const lessens = exampleFor("lessens", (organization) => {
      organization.apps = [{ uid: "github", blueprint: "github" }];
    });
    expect(changed(await apply(lessens))).toEqual([
      { action: "unmanaged", object: "blueprint by-hand in lessens" },
      { action: "unmanaged", object: "app default/sensors in lessens" },
      { action: "unmanaged", object: "channel default/github/extra in lessens" },
    ]);
    // `active` proves that the secret was kept, because the channel would need setup without it.
    const states = (await owner.get(path)).map(({ state }: { state: string }) => state);
    expect(states).toEqual(["active", "active"]);
  });

  it("creates an organization, and shows the organization's first key once", async () => {
    const file = { organizations: [{ name: "acme", spaces: [{ name: "one" }, { name: "two" }] }] };
    expect((await plan(file)).steps.map(({ action, object }) => [action, object])).toEqual([
      ["create", "organization acme"],
      ["create", "space one in acme"],
      ["create", "space two in acme"],
    ]);
    const lost = applySetUp(deps(), await wantedOf(file), () => Promise.reject(new Error("nobody sees it")));
    await expect(lost).rejects.toThrow("nobody sees it");
    const { keys } = await apply(file);
    const acme = api.as(keys[0] ?? "");
    expect(await acme.get("/apps")).toEqual([]);
    expect((await apply(file)).keys).toEqual([]);
    expect(JSON.stringify(await rows())).not.toContain(keys[0]);
  });

  it("creates a new organization even if another organization has the same display name", async () => {
    const stranger = api.as(await api.createForeignKey());
    const [{ id }] = await stranger.get("/organizations");
    await stranger.put(`/organizations/${id}`, { name: "taken" });
    const file = exampleFor("taken");
    expect((await apply(file)).steps[0]).toMatchObject({ action: "create", object: "organization taken" });
    expect(await stranger.get("/apps")).toEqual([]);
    expect(changed(await plan(file))).toEqual([]);
  });

  it("creates each object once if the file is applied three times concurrently", async () => {
    const { db } = api.database;
    const count = async (table: "organizations" | "channels") =>
      (await db.selectFrom(table).select("createdAt").execute()).length;
    const before = [await count("organizations"), await count("channels")];
    const file = exampleFor("at once");
    const all = await Promise.all([apply(file), apply(file), apply(file)]);
    expect(all.flatMap(({ keys }) => keys)).toHaveLength(1);
    const [organizations = 0, channels = 0] = before;
    expect([await count("organizations"), await count("channels")]).toEqual([
      organizations + 1,
      channels + 2,
    ]);
  });

  it("has its changes recorded in the change feed, and in the audit log without an account", async () => {
    const changes = () =>
      api.database.db.selectFrom("changes").select("kind").where("kind", "=", "channel").execute();
    const before = await changes();
    const owner = await applyNew(exampleFor("noted"));
    expect(await changes()).toHaveLength(before.length + 2);
    const body = await owner.get("/audit?entity=channel");
    expect(
      body.map(({ accountId, action, entityId }: Record<string, string>) => [accountId, action, entityId]),
    ).toEqual(expect.arrayContaining([[null, "create", expect.stringMatching(/^app_[a-z0-9]+\/hooks$/)]]));
  });

  it("has a plan that lists settings in conflict with the database, such as a different channel kind", async () => {
    const owner = await applyNew(exampleFor("conflicts"));
    const apps = await owner.get("/apps");
    const sensors = apps.find(({ uid }: { uid: string }) => uid === "sensors");
    const { db } = api.database;
    await db.updateTable("channels").set({ kind: "sse" }).where("appId", "=", sensors.id).execute();
    const { conflicts } = await plan(exampleFor("conflicts"));
    expect(conflicts).toEqual([
      {
        path: "channel readings of sensors in conflicts/default",
        message: expect.stringContaining("a channel's kind cannot change"),
      },
    ]);
  });
});

describe("a config file that changes a webhook channel", () => {
  it("conflicts with a channel that reconciles it, which the file does not declare", async () => {
    const declare = (windowSeconds: number) => ({
      organizations: [
        {
          name: "reconciled",
          apps: [
            {
              uid: "shop",
              title: "Shop",
              channels: [
                {
                  uid: "orders",
                  kind: "webhook",
                  config: { dedupe: { windowSeconds } },
                  events: [{ type: "e", idPath: "$.id" }],
                },
              ],
            },
          ],
        },
      ],
    });
    const organization = await applyNew(declare(86_400));
    const [app] = await organization.get("/apps");
    await organization.post(`/apps/${app.id}/channels`, {
      uid: "missed",
      kind: "polling",
      config: {
        reconciles: "orders",
        request: { url: "https://api.example/events" },
        discriminator: { by: "timestamp", path: "$.at", lookBackSeconds: 600 },
      },
    });
    expect((await apply(declare(43_200))).conflicts).toEqual([]);
    const { conflicts } = await apply(declare(500));
    expect(conflicts).toEqual([
      {
        path: expect.stringContaining("channel orders of shop"),
        message: expect.stringContaining("config.dedupe.windowSeconds must be at least 600"),
      },
    ]);
    const stored = await organization.get(`/apps/${app.id}/channels/orders`);
    expect(stored.config.dedupe.windowSeconds).toBe(43_200);
  });
});

describe("an invalid config file", () => {
  const wrong = async (file: unknown, variables?: Record<string, string>) => {
    const checked = await check(file, variables);
    return checked.ok ? [] : checked.error.map(({ path, message }) => `${path}: ${message}`);
  };

  it("is rejected with one error that lists all missing variables and all invalid settings", async () => {
    const file = example((organization) => {
      organization.blueprints[0].channels[0].events[0].typePath = "nonsense";
      organization.apps[1].channels[0].config.dedupe.by = "colour";
      organization.apps[1].space = "nowhere";
      organization.apps.push({ uid: "third", blueprint: "unknown", channels: [{ uid: "a" }] });
    });
    const findings = await wrong(file, {});
    expect(findings.map((finding) => finding.split(": ")[0]).sort()).toEqual([
      "organizations[0].apps[0].channels[0].config.secrets[0].value",
      "organizations[0].apps[1].channels[0].config.dedupe.by",
      "organizations[0].apps[1].space",
      "organizations[0].apps[2].blueprint",
      "organizations[0].apps[2].channels[0].kind",
      "organizations[0].blueprints[0].channels[0].events[0].typePath",
    ]);
    expect(findings.join()).toContain("GITHUB_WEBHOOK_SECRET");
  });

  it("is rejected if a webhook wakes a channel that its app does not declare as a polling channel", async () => {
    const items = {
      uid: "items",
      kind: "polling",
      config: {
        request: { url: "https://api.example/items" },
        schedule: { intervalSeconds: 60 },
        discriminator: { by: "seenSet" },
        itemId: "$.id",
      },
      events: [{ type: "item" }],
    };
    const declare = (...wakes: string[]) => ({
      organizations: [
        {
          name: "default",
          apps: [
            {
              uid: "wakes",
              title: "Wakes",
              channels: [{ uid: "bell", kind: "webhook", config: { wakes } }, items],
            },
          ],
        },
      ],
    });
    expect(await check(declare("items"))).toMatchObject({ ok: true });
    const checked = await check(declare("items", "itmes"));
    expect(checked.ok ? [] : checked.error).toEqual([
      {
        path: "organizations[0].apps[0].channels[0].config.wakes[1]",
        message:
          "must be the uid of a polling channel of the same app, but there is no channel itmes; did you mean items?",
      },
    ]);
  });

  it("is rejected if it contains a literal secret, or takes another setting from an environment variable", async () => {
    const literal = example((organization) => {
      organization.apps[0].channels[0].config.secrets[0].value = "in-the-clear";
      organization.apps[1].channels[0].config.itemsPath = { $env: "GITHUB_WEBHOOK_SECRET" };
    });
    const findings = await wrong(literal);
    expect(findings).toEqual([
      expect.stringMatching(/apps\[0\]\.channels\[0\]\.config\.secrets: is a secret/),
      expect.stringMatching(/apps\[1\]\.channels\[0\]\.config\.itemsPath: is not a secret/),
    ]);
    expect(findings.join()).not.toContain("in-the-clear");
  });

  it.each([
    ["a body that is no JSON", "{", ""],
    ["unknown fields", { organizations: [], colour: 1 }, "colour"],
    ["a name twice", { organizations: [{ name: "a" }, { name: "a" }] }, "organizations[1].name"],
    [
      "an app without title",
      { organizations: [{ name: "a", apps: [{ uid: "x" }] }] },
      "organizations[0].apps[0].title",
    ],
  ])("is rejected because of %s", async (_, file, path) => {
    expect((await wrong(file))[0]?.split(": ")[0]).toBe(path);
  });
});
