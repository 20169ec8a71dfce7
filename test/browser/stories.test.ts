import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openProblem } from "../../src/data/problems/problems.ts";
import { channelOf, type InstalledApp, installApp } from "../support/channels.ts";
import { type ConsolePage, startTestConsole, type TestConsole } from "../support/console.ts";
import { deliver } from "../support/deliver.ts";
import { freePort } from "../support/free-port.ts";
import type { TestGateway } from "../support/gateway.ts";
import { callApi } from "../support/gateway-process.ts";
import { CLIENT, type OAuthProvider, startOAuthProvider } from "../support/oauth-provider.ts";
import { untilRecorded } from "../support/recorded.ts";

let console: TestConsole;
let provider: OAuthProvider;
beforeAll(async () => {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  provider = await startOAuthProvider({ redirectUri: `${origin}/v1/connections/oauth/callback` });
  console = await startTestConsole({
    INLET_PORT: String(port),
    INLET_BASE_URL: `${origin}/v1`,
    INLET_ALLOW_NETWORKS: "127.0.0.1/32",
  });
});
afterAll(async () => {
  await console?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
});

interface Organization extends Pick<TestGateway, "api"> {
  readonly id: string;
  readonly key: string;
}

/** Creates an empty organization with its own API key. */
async function makeOrganization(name: string): Promise<Organization> {
  const { id, apiKey } = await console.gateway.api<{
    readonly id: string;
    readonly apiKey: { readonly key: string };
  }>("POST", "/organizations", { name });
  const { key } = apiKey;
  return {
    id,
    key,
    api: (method, path, body) => callApi(console.gateway.origin, method, path, body, key),
  };
}

const post = (app: InstalledApp, body: string, headers?: Readonly<Record<string, string>>) =>
  deliver(channelOf(app).url ?? "", body, headers);

/** Follows a link within the page. Unlike a navigation, this keeps the session. */
async function follow(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `{ const a = document.createElement("a"); a.href = ${JSON.stringify(`/console${path}`)}; document.body.append(a); a.click(); a.remove(); }`,
  );
}

interface Watched {
  /** Waits until the page has no pending requests and shows no placeholders. */
  readonly settled: () => Promise<void>;
  /** Error responses, as status and path. */
  readonly refused: string[];
}

function watch({ page }: ConsolePage): Watched {
  const pending = new Set<object>();
  const refused: string[] = [];
  page.on("request", (request) => {
    // The request of the live tail never ends, so it does not count as pending.
    if (!request.url().includes("/events/stream")) pending.add(request);
  });
  page.on("requestfinished", (request) => pending.delete(request));
  page.on("requestfailed", (request) => pending.delete(request));
  page.on("response", (response) => {
    if (response.status() >= 400) refused.push(`${response.status()} ${new URL(response.url()).pathname}`);
  });
  const isIdle = async (): Promise<boolean> =>
    pending.size === 0 &&
    Number(await page.locator("main .skeleton, main .table-row.waiting").count()) === 0 &&
    Number(await page.locator("main h1").count()) === 1;
  return {
    refused,
    async settled() {
      // A rendered view can start more requests, so the page must be idle twice in a row.
      await expect
        .poll(async () => (await isIdle()) && (await nextFrames(page)) && (await isIdle()))
        .toBe(true);
    },
  };
}

const nextFrames = async (page: Page): Promise<boolean> => {
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))");
  return true;
};

const viewsOf = async (page: Page): Promise<readonly (readonly [title: string, path: string])[]> => {
  const links = await page.locator("#nav .nav-group a").all();
  return Promise.all(
    links.map(async (link) => {
      const title = await link.locator("span").first().textContent();
      return [title ?? "", ((await link.getAttribute("href")) ?? "").replace("/console", "")] as const;
    }),
  );
};

const openKey = async (key: string, width = 1440) => {
  const opened = await console.open("/", { key, width });
  const watched = watch(opened);
  await watched.settled();
  return { opened, ...watched, page: opened.page };
};

/** Removes expected complaints. The browser logs each failed request to its console. */
const forgetRefusals = ({ complaints }: ConsolePage, status: RegExp): void => {
  complaints.splice(0, complaints.length, ...complaints.filter((one) => !status.test(one)));
};

it("a user of a new organization creates a channel, and sees its first event in the live tail and in the list of events", async () => {
  const fresh = await makeOrganization("Fresh");
  await using opened = await console.open("/", { key: fresh.key });
  const { page } = opened;
  await page.getByText("No open problems").waitFor();
  await page.getByRole("link", { name: "Receive events" }).click();
  await page.getByLabel("Sender").fill("strip");
  await page.getByRole("button", { name: "Stripe", exact: true }).click();
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.getByLabel("Signing secret").fill("whsec_0123456789");
  await page.getByRole("button", { name: "Set the secret" }).click();
  await page.getByText("ready", { exact: true }).waitFor();
  const steps = page.url();
  await page.getByRole("link", { name: "Live tail" }).click();
  await page.locator(".badge", { hasText: "Live" }).waitFor();
  // A second window of the same user sends the event, while the first one shows the live tail.
  await using second = await console.open("/", { key: fresh.key });
  await follow(second.page, new URL(steps).pathname.replace("/console", "") + new URL(steps).search);
  await second.page.getByRole("button", { name: "Send a test event" }).click();
  await second.page.getByText("is on its topic").waitFor();
  await page.locator('[data-index="0"]').getByText("charge.succeeded", { exact: true }).waitFor();
  // The link in the test result opens the event in the detail panel next to the list.
  await second.page.getByRole("link", { name: "See it" }).click();
  const panel = second.page.getByRole("complementary", { name: "Event" });
  await panel.getByText("charge.succeeded").first().waitFor();
  await second.page.locator('[data-index="0"][aria-selected="true"]').waitFor();
});

it("a user fixes the schema that an item violated, previews and saves the change, and publishes the item from quarantine", async () => {
  const owner = await makeOrganization("Quarantine");
  const app = await installApp(owner, [
    {
      uid: "orders",
      kind: "webhook",
      events: [
        { type: "order", typePath: "$.type", payloadPath: "$.order", schema: { required: ["total"] } },
      ],
    },
  ]);
  expect(await post(app, '{"type":"order","order":{"sum":7}}')).toMatchObject({ quarantined: 1 });
  await untilRecorded(owner, app.id);
  await using opened = await console.open("/", { key: owner.key });
  const { page } = opened;
  await page.getByRole("link", { name: "Quarantine", exact: true }).click();
  await page.getByRole("row").filter({ hasText: "schema_mismatch" }).click();
  await page.getByRole("link", { name: "Fix the definitions" }).click();
  await page.getByRole("button", { name: "JSON", exact: true }).click();
  const editor = page.getByRole("textbox", { name: "Definitions (JSON)" });
  await page.locator(".editor .cm-editor").waitFor();
  await page.getByText("all would have the same result").waitFor();
  await editor.fill(
    '[{"type": "order", "typePath": "$.type", "payloadPath": "$.order", "schema": {"required": ["sum"]}}]',
  );
  await page.getByText("1 would have a different result").waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("All workers use the change within two seconds").first().waitFor();
  await page.getByRole("button", { name: "Open quarantine" }).click();
  await page.getByRole("row").filter({ hasText: "schema_mismatch" }).click();
  const dialog = page.getByRole("dialog");
  // A change is active after at most two seconds, so an early preview can still use the old definitions.
  await expect
    .poll(async () => {
      await page.getByRole("button", { name: "Preview and redrive 1" }).click();
      const released = await dialog.locator(".tally dd").first().textContent();
      if (released === "1") return released;
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      return released;
    })
    .toBe("1");
  await dialog.getByRole("button", { name: "Redrive 1", exact: true }).click();
  // Closing the dialog before the redrive has finished would stop it.
  await dialog.locator(".row.end").getByRole("button", { name: "Close" }).waitFor();
  await expect.poll(() => dialog.locator(".tally dd").first().textContent()).toBe("1");
  await dialog.locator(".row.end").getByRole("button", { name: "Close" }).click();
  await page.getByRole("link", { name: "Events", exact: true }).click();
  await page.locator('[data-index="0"]').getByText('"sum":7').waitFor();
});

it("a user creates an OAuth connection with a form and signs in at a real OAuth provider", async () => {
  const owner = await makeOrganization("Connecting");
  await using opened = await console.open("/connections", { key: owner.key });
  const { page, context } = opened;
  await page.getByRole("button", { name: "New connection" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Kind").selectOption("oauth2");
  await form.getByLabel("Name", { exact: true }).fill("Calendar");
  await form.getByLabel("Grant").selectOption({ label: "A person signs in" });
  await form.getByLabel("Client id", { exact: true }).fill(CLIENT.clientId);
  for (const more of await form.locator("details:not([open]) > summary", { hasText: "more" }).all())
    await more.click();
  await form.getByLabel("Issuer").fill(provider.issuer);
  await form.getByLabel("Client secret").fill(CLIENT.clientSecret);
  await form.getByRole("group", { name: "Allowed origins" }).getByRole("button", { name: "Add" }).click();
  await form
    .getByRole("group", { name: "Allowed origins" })
    .getByRole("textbox")
    .fill("https://calendar.example.com");
  const scopes = form.getByRole("group", { name: "Scopes" });
  for (const [index, scope] of ["openid", "offline_access"].entries()) {
    await scopes.getByRole("button", { name: "Add" }).click();
    await scopes.getByRole("textbox").nth(index).fill(scope);
  }
  await form.getByRole("button", { name: "Create" }).click();
  await form.waitFor({ state: "detached" });
  await page.getByRole("row").filter({ hasText: "Calendar" }).click();
  const panel = page.getByRole("complementary", { name: "Calendar" });
  await panel.getByText("sign-in needed").waitFor();
  const [popup] = await Promise.all([
    context.waitForEvent("page"),
    panel.getByRole("button", { name: "Sign in at the provider" }).click(),
  ]);
  await popup.getByText("The connection is authorized").waitFor();
  await panel.locator(".badge.ok", { hasText: "ready" }).waitFor();
  await page.getByRole("row").filter({ hasText: "Calendar" }).locator(".badge.ok").waitFor();
  expect(provider.asked).toEqual(["authorization_code"]);
});

describe("the console with two organizations", () => {
  /** Creates an entity for each view. All entities have `name` in their names. */
  async function fill(one: Organization, name: string): Promise<InstalledApp> {
    const app = await installApp(one, [
      {
        uid: `${name}-hooks`,
        kind: "webhook",
        // A problem is resolved when no check has found it for a minute. This channel really is silent by then, so its
        // problem stays open.
        config: { expectEverySeconds: 60 },
        events: [{ type: `${name}.seen`, typePath: "$.type", idPath: "$.id" }],
      },
      {
        uid: `${name}-list`,
        kind: "polling",
        config: {
          run: "always",
          request: { url: "http://127.0.0.1:9/" },
          schedule: { intervalSeconds: 3600 },
          itemId: "$.id",
          itemsPath: "$",
          discriminator: { by: "sequence", path: "$.seq" },
        },
        events: [{ type: `${name}.listed` }],
      },
    ]);
    await one.api("PUT", `/apps/${app.id}`, { title: `${name} app` });
    await one.api("POST", "/blueprints", { title: `${name} blueprint`, channels: [] });
    await one.api("POST", "/iam/api-keys", { name: `${name} key`, permissions: ["apps.read"] });
    await one.api("POST", "/connections", {
      name: `${name} connection`,
      kind: "bearer",
      config: { token: "t-0123456789" },
      allowedOrigins: ["https://api.example.com"],
    });
    await one.api("POST", `/apps/${app.id}/events/subscribe`, { eventUid: `${name}-hooks:*` });
    await post(app, JSON.stringify({ type: `${name}.seen`, id: `${name}-1` }));
    await post(app, JSON.stringify({ type: `${name}.unknown`, id: `${name}-2` }));
    const nowMs = Date.now();
    await openProblem(
      console.stores.db,
      {
        organizationId: one.id,
        subject: channelOf(app).id,
        about: {
          app: { id: app.id, uid: `${name}-app`, title: name },
          channel: { uid: channelOf(app).uid, title: null },
        },
        figures: {},
        kind: "channel_silent",
        level: "raised",
        severity: "error",
        message: `${name} is silent.`,
        suggestedAction: "Look at its sender.",
      },
      { seenSince: new Date(nowMs), nowMs },
    );
    return app;
  }

  let zebra: Organization;
  let yak: Organization;
  let app: InstalledApp;
  beforeAll(async () => {
    zebra = await makeOrganization("zebra");
    yak = await makeOrganization("yak");
    app = await fill(zebra, "zebra");
    await fill(yak, "yak");
  });

  /** Returns the titles of the key's views whose HTML contains the word. */
  async function viewsWith(key: string, word: string): Promise<readonly string[]> {
    const { opened, settled, page } = await openKey(key);
    await using _ = opened;
    const found: string[] = [];
    for (const [title, path] of await viewsOf(page)) {
      await follow(page, path);
      await settled();
      const html = await page.evaluate("document.body.innerHTML");
      if (String(html).includes(word)) found.push(title);
    }
    return found;
  }

  it("never shows data of one organization to a user of the other", async () => {
    const own = await viewsWith(zebra.key, "zebra");
    expect(own).toEqual(
      expect.arrayContaining([
        ...["Overview", "Problems", "Events", "Deliveries", "Quarantine", "Sources", "Subscriptions"],
        "Agents",
        ...["Channels", "Catalog", "Apps", "Blueprints", "Connections", "API keys", "Organization"],
      ]),
    );
    expect(await viewsWith(yak.key, "zebra")).toEqual([]);
    expect(await viewsWith(yak.key, app.id)).toEqual([]);
  });

  it("shows a not-found error when a user opens an address that belongs to the other organization", async () => {
    const first = async (path: string): Promise<string> =>
      (await zebra.api<readonly { readonly id: string }[]>("GET", path))[0]?.id ?? "";
    const [blueprint, connection, key, problem, delivery, item] = await Promise.all([
      ...["/blueprints", "/connections", "/iam/api-keys", "/problems"].map(first),
      ...["deliveries", "quarantine"].map((one) => first(`/apps/${app.id}/${one}`)),
    ]);
    const within = `/apps/${app.id}`;
    const { opened, settled, page } = await openKey(yak.key);
    await using _ = opened;
    for (const path of [
      ...["tail", "subscriptions", "agents", "channels", "catalog"].map((view) => `${within}/${view}`),
      `${within}/deliveries/${delivery}`,
      `${within}/channels/zebra-hooks/definitions`,
      `/quarantine?app=${app.id}&item=${item}`,
      ...[`/apps?id=${app.id}`, `/blueprints?id=${blueprint}`, `/connections?id=${connection}`],
      ...[`/api-keys?id=${key}`, `/problems?id=${problem}`],
    ]) {
      await follow(page, path);
      await page.waitForURL(`**/console${path}`);
      await settled();
      await page.getByRole("alert").first().waitFor();
      expect([path, await page.getByRole("alert").first().textContent()]).toEqual([
        path,
        expect.stringContaining("not_found"),
      ]);
      expect([path, (await page.locator("main").textContent())?.includes("zebra is")]).toEqual([path, false]);
    }
    // Lists of all apps are empty for the app of another organization. Former addresses of lists of one app lead there.
    for (const path of ["/events", "/deliveries", "/quarantine", "/dead-letters", "/sources"]) {
      await follow(page, `${within}${path}`);
      await page.waitForURL(`**/console${path}?app=${app.id}`);
      await settled();
      await page.getByText("match the filters").waitFor();
      expect([path, (await page.locator("main").textContent())?.includes("zebra is")]).toEqual([path, false]);
    }
    forgetRefusals(opened, /404/);
  });

  it("has an overview whose problems and tiles all link to working views", async () => {
    const { opened, settled, refused, page } = await openKey(zebra.key);
    await using _ = opened;
    await page.locator(".problem").getByRole("link", { name: "zebra-hooks" }).click();
    await page
      .getByRole("complementary", { name: "zebra-hooks" })
      .getByText("needs")
      .or(page.getByRole("complementary", { name: "zebra-hooks" }).getByRole("button", { name: "Pause" }))
      .first()
      .waitFor();
    await page.getByRole("link", { name: "Overview" }).click();
    await settled();
    const ways = await page
      .locator("main a[href^='/console/']")
      .evaluateAll((links) => [...new Set(links.map((link) => link.getAttribute("href") ?? ""))]);
    expect(ways.length).toBeGreaterThan(10);
    for (const way of ways) {
      await follow(page, way.replace("/console", ""));
      await page.waitForURL(`**${way}`);
      await settled();
      expect([way, await page.getByRole("heading", { level: 1 }).textContent()]).toEqual([
        way,
        expect.not.stringMatching(/Page not found|failed to load|Permission required/),
      ]);
      expect([way, await page.locator("main [role=alert]").count(), refused.join()]).toEqual([way, 0, ""]);
    }
  });

  it("only sends requests that the permissions of the API key allow", async () => {
    const names = (await zebra.api<readonly { readonly name: string }[]>("GET", "/iam/permissions?limit=200"))
      .map(({ name }) => name)
      .filter((name) => name.endsWith(".read"));
    const grants = [
      [],
      ...["apps.read", "deliveries.read", "problems.read", "overview.read", "iam.read", "audit.read"]
        .filter((name) => names.includes(name))
        .map((name) => [name]),
      ["blueprints.read", "connections.read", "organizations.read"],
      ["apps.read", "apps.write"],
      ["apps.read", "deliveries.read", "problems.read"],
    ];
    const asked: string[] = [];
    for (const permissions of grants) {
      const { key } = await zebra.api<{ readonly key: string }>("POST", "/iam/api-keys", {
        name: "narrow",
        permissions,
      });
      const { opened, settled, page, refused } = await openKey(key);
      await using _ = opened;
      for (const [, path] of await viewsOf(page)) {
        await follow(page, path);
        await settled();
        const row = page.locator('main [data-index="0"].opens').first();
        if ((await row.count()) > 0) {
          await row.click();
          await settled();
        }
        asked.push(...refused.splice(0).map((one) => `${permissions.join()} in ${path}: ${one}`));
      }
      opened.complaints.splice(0);
    }
    expect(asked).toEqual([]);
  });
});

it("no view of the console runs scripts from names, types, ids, titles, headers or bodies", async () => {
  const markup = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>';
  const hidden = "\u001b[31mred\u001b[0m\u0007\u202Egnp.exe\u2066\u200B\uFEFF";
  const endless = "x".repeat(200);
  const victim = await makeOrganization(`${markup.slice(0, 60)}\u202E`);
  const type = `${markup}\u202E${endless.slice(0, 100)}`;
  const app = await installApp(victim, [
    {
      uid: "hooks",
      kind: "webhook",
      title: `${markup}\u202E`,
      events: [{ type, typePath: "$.type", idPath: "$.id" }],
    },
  ]);
  await victim.api("PUT", `/apps/${app.id}`, { title: `${markup}\u202E${endless}`.slice(0, 200) });
  await victim.api("POST", "/blueprints", { title: `${markup}\u202E${endless}`.slice(0, 200), channels: [] });
  await victim.api("POST", "/iam/api-keys", { name: `${markup}\u202E`, permissions: ["apps.read"] });
  await victim.api("POST", "/connections", {
    name: `${markup}\u202E`,
    kind: "bearer",
    config: { token: "t-0123456789" },
    allowedOrigins: ["https://api.example.com"],
  });
  await victim.api("POST", `/apps/${app.id}/events/subscribe`, { eventUid: "hooks:*" });
  const headers = { "x-note": `${markup} ${endless}`, "x-long": "y".repeat(4_000) };
  const body = (id: string, more: object = {}): string =>
    JSON.stringify({
      type,
      id,
      note: markup + hidden,
      [markup]: hidden,
      endless: "z".repeat(2_000),
      ...more,
    });
  await post(app, body(`${markup.slice(0, 60)}\u202E${endless.slice(0, 60)}`), headers);
  await post(app, body("mega", { mega: markup.repeat(9_000) }), headers);
  await post(
    app,
    JSON.stringify({ type: `${type}!`, id: markup + hidden, mega: "m".repeat(500_000) }),
    headers,
  );
  // The recorder samples one delivery per second, and stores no large bodies. So this sends until one body is stored.
  await expect
    .poll(async () => {
      await post(app, body("small"), headers);
      const preview = await victim.api<{ readonly examined: number }>(
        "POST",
        `/apps/${app.id}/deliveries/preview`,
        { channelId: "hooks" },
      );
      return preview.examined;
    })
    .toBeGreaterThan(0);
  for (const width of [1440, 360]) {
    const { opened, settled, page } = await openKey(victim.key, width);
    await using _ = opened;
    const look = async (where: string): Promise<void> => {
      await settled();
      expect([where, await page.evaluate("'hit' in window")]).toEqual([where, false]);
      expect([where, await page.locator("main img, main script").count()]).toEqual([where, 0]);
      const wide = Number(await page.evaluate("document.documentElement.scrollWidth"));
      expect([where, width, wide <= width]).toEqual([where, width, true]);
      const shown = String(await page.evaluate("document.body.innerText"));
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for control characters
      expect([where, /[\u001b\u0007\u202E\u2066\u200B\uFEFF]/.exec(shown)]).toEqual([where, null]);
    };
    for (const [title, path] of await viewsOf(page)) {
      await follow(page, path);
      await look(title);
      // Some views list groups. The first click then opens a group, and the second one opens an item in it.
      for (const at of ["first row", "row in group"]) {
        const row = page.locator('main [data-index="0"].opens').first();
        // In a narrow window the detail panel covers the list.
        if ((await row.count()) === 0 || (await page.locator("aside.detail").count()) > 0) break;
        await row.click();
        await look(`${title}, ${at}`);
      }
    }
    await follow(page, `/apps/${app.id}/channels/hooks/definitions`);
    await page.locator(".definition-form").first().waitFor();
    await page.getByText(/Compared with the newest \d/).waitFor();
    for (const tried of await page.locator("details.tried > summary").all()) await tried.click();
    await page.getByRole("region", { name: "Fields of the delivery" }).first().waitFor();
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.locator(".editor .cm-editor").waitFor();
    expect(await page.evaluate("'hit' in window")).toBe(false);
  }
});
