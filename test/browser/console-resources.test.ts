import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { channelOf, installApp } from "../support/channels.ts";
import { lookAt, pressUntil, startTestConsole, type TestConsole } from "../support/console.ts";

let console: TestConsole;
beforeAll(async () => {
  const problemTiming = { everyMs: 1_000, slowEveryMs: 1_000, openAfterMs: 0 };
  console = await startTestConsole({}, { problemTiming });
  const { api } = console.gateway;
  const app = await installApp(console.gateway, [
    { uid: "main", kind: "webhook", events: [{ type: "push", idPath: "$.id" }] },
  ]);
  const url = channelOf(app).url ?? "";
  const headers = { "content-type": "application/json" };
  for (const body of ['{"id":"1"}', '{"id":"1"}', '{"nothing":true}'])
    await fetch(url, { method: "POST", headers, body });
  await fetch(url, { method: "POST", headers: { "content-type": "multipart/mixed" }, body: "x" });
  await api("POST", `/apps/${app.id}/events/subscribe`, { eventUid: "main:*" });
  await api("POST", "/connections", {
    name: "Example API",
    kind: "bearer",
    config: { token: "t-0123456789" },
    allowedOrigins: ["https://api.example.com"],
  });
});
afterAll(() => console?.[Symbol.asyncDispose]());

describe("the console", () => {
  it("creates an API key with a form, shows the key once, and revokes it after a confirmation", async () => {
    await using opened = await console.open("/api-keys");
    const { page } = opened;
    await page.getByRole("button", { name: "New API key" }).click();
    const form = page.getByRole("dialog", { name: "New API key" });
    await form.getByLabel("Name").fill("deployment");
    await form.getByLabel("apps.read", { exact: true }).check();
    await form.getByText("API call").click();
    const shown = (await form.locator(".api-call pre").textContent()) ?? "";
    expect(shown).toContain('-H "Authorization: Bearer $INLET_API_KEY"');
    expect(shown).toContain(`'${console.gateway.origin}/v1/iam/api-keys'`);
    await form.getByRole("button", { name: "Create" }).click();
    const told = page.getByRole("dialog", { name: "The key deployment" });
    const key = (await told.locator("pre").textContent()) ?? "";
    expect(key).toMatch(/^ik_/);
    await told.getByRole("button", { name: "I have saved it" }).click();
    await told.waitFor({ state: "detached" });
    const answer = await fetch(`${console.gateway.origin}/v1/auth/whoami`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(await answer.json()).toMatchObject({ permissions: ["apps.read"] });
    expect(await page.content()).not.toContain(key);

    await page.getByRole("row").filter({ hasText: "deployment" }).click();
    const detail = page.getByRole("complementary", { name: "deployment" });
    await detail.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("row").filter({ hasText: "deployment" }).waitFor({ state: "detached" });
  });

  it("sends only the changed fields of a form, and reports a conflict if someone else changed the entity in the meantime", async () => {
    const made = await console.gateway.api<{ id: string }>("POST", "/blueprints", {
      title: "Tracker",
      channels: [],
    });
    await using opened = await console.open(`/blueprints?id=${made.id}`);
    const { page, complaints } = opened;
    await page.getByRole("button", { name: "Change" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Title").fill("Issue tracker");
    const [request] = await Promise.all([
      page.waitForRequest((one) => one.method() === "PUT"),
      form.getByRole("button", { name: "Save" }).click(),
    ]);
    expect(request.postDataJSON()).toEqual({ title: "Issue tracker" });
    await form.waitFor({ state: "detached" });
    await page.getByRole("complementary", { name: "Issue tracker" }).waitFor();

    await page.getByRole("button", { name: "Change" }).click();
    await form.getByLabel("Title").fill("Mine");
    await console.gateway.api("PUT", `/blueprints/${made.id}`, { title: "Theirs" });
    await form.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => form.getByRole("alert").textContent()).toContain("conflict");
    complaints.splice(0, complaints.length, ...complaints.filter((one) => !one.includes("409")));
  });

  it("creates a connection for a known provider from a client id and a secret", async () => {
    await using opened = await console.open("/connections");
    const { page } = opened;
    const row = page.getByRole("row").filter({ hasText: "Issues" });
    await page.getByRole("button", { name: "New connection" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Kind").selectOption({ label: "OAuth 2.0" });
    await form.getByLabel("Name", { exact: true }).fill("Issues");
    await form.getByLabel("Provider").selectOption({ label: "GitHub" });
    await form.getByText("/v1/connections/oauth/callback").waitFor();
    await form.getByLabel("Client id").fill("Iv1.1a2b3c");
    await form.getByLabel("Client secret").fill("swordfish");
    await form.getByRole("button", { name: "Create" }).click();
    await row.getByText("OAuth 2.0 · github").waitFor();
    await row.getByText("sign-in needed").waitFor();
    await row.click();
    const panel = page.getByRole("complementary", { name: "Issues" });
    await panel.getByText("https://api.github.com").first().waitFor();
    await panel.getByRole("button", { name: "Sign in at the provider" }).waitFor();
    await lookAt(console, {
      name: "new-connection",
      path: "/connections",
      ready: async (shown) => {
        await shown.getByRole("button", { name: "New connection" }).click();
        const dialog = shown.getByRole("dialog");
        await dialog.getByLabel("Kind").selectOption({ label: "OAuth 2.0" });
        await dialog.getByLabel("Provider").selectOption({ label: "Slack" });
        await dialog.getByText("channels:history").waitFor();
      },
    });
  });

  it("marks the form field that the API rejected", async () => {
    await using opened = await console.open("/connections");
    const { page, complaints } = opened;
    await page.getByRole("button", { name: "New connection" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Kind").selectOption("basic");
    await form.getByLabel("Name", { exact: true }).fill("Mail");
    await form.getByLabel("Username").fill("a:b");
    await form.getByLabel("Password").fill("swordfish");
    await form.getByRole("button", { name: "Add" }).click();
    await form.getByRole("textbox", { name: "1", exact: true }).fill("https://mail.example.com");
    await form.getByText("API call").click();
    expect(await form.locator(".api-call pre").textContent()).not.toContain("swordfish");
    await form.getByRole("button", { name: "Create" }).click();
    await form.locator(".field-error").first().waitFor();
    await expect.poll(() => form.getByLabel("Username").getAttribute("aria-invalid")).toBe("true");
    complaints.splice(0, complaints.length, ...complaints.filter((one) => !one.includes("400")));
  });

  it("lists only the audit entries of the selected kind of entity", async () => {
    await using opened = await console.open("/audit?entity=connection");
    const { page } = opened;
    const grid = page.getByRole("grid", { name: "Audit" });
    await grid.getByText("created the connection 'Example API'.").first().waitFor();
    expect(await grid.getByText("the blueprint").count()).toBe(0);
  });
});

it("the list of apps shows figures, and its search finds apps by title", async () => {
  const { id: blueprintId } = await console.gateway.api<{ id: string }>("POST", "/blueprints", {
    title: "Shop",
    channels: [],
  });
  await console.gateway.api("POST", "/apps/install", {
    blueprintId,
    uid: "shop-eu",
    title: "Shop of Europe",
  });
  await using opened = await console.open("/apps");
  const { page } = opened;
  const rows = page.getByRole("grid", { name: "Apps" }).locator(".table-row");
  const main = rows.filter({ hasText: "test" });
  await main.getByText("ok", { exact: true }).waitFor();
  // The channels of the app, and its quarantined item.
  await expect.poll(() => main.getByRole("link").allTextContents()).toEqual(["1", "1"]);
  await page.getByLabel("Search").fill("of euro");
  await expect.poll(() => rows.allTextContents()).toEqual(["shop-eu Shop of Europeok–000"]);
});

describe("the app switcher", () => {
  it("finds an app by its title with the keyboard, and opens the same view for it", async () => {
    const { id: blueprintId } = await console.gateway.api<{ id: string }>("POST", "/blueprints", {
      title: "Clinic",
      channels: [],
    });
    const app = { blueprintId, uid: "clinic-us", title: "Clinic of America" };
    const { id } = await console.gateway.api<{ id: string }>("POST", "/apps/install", app);
    await using opened = await console.open("/");
    const { page } = opened;
    await page.getByRole("link", { name: "Channels" }).click();
    await page.waitForURL("**/channels");
    await page.locator("h1").waitFor();
    await pressUntil(page, ".", page.getByRole("dialog"));
    await page.getByRole("dialog").getByRole("searchbox").and(page.locator(":focus")).waitFor();
    await page.keyboard.type("of AMERICA");
    // Enter waits for the search, and then picks the first app.
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/apps/${id}/channels`);
    await page.getByRole("button", { name: "App clinic-us" }).click();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.pathname.endsWith("/channels") && !url.pathname.includes(id));
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  it("stays closed if the picker closes between the two events of one Enter key press", async () => {
    await using opened = await console.open("/apps");
    const { page } = opened;
    const switcher = page.getByRole("button", { name: /^App / });
    await switcher.click();
    await page.getByRole("dialog").getByRole("row").nth(1).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.getByRole("dialog").locator(".table-row:focus").waitFor();
    // Chromium sends `keydown` and `keypress` as separate events. On a busy machine, the page renders between them.
    const devtools = await page.context().newCDPSession(page);
    const enter = { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13 };
    await devtools.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...enter });
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await switcher.and(page.locator(":focus")).waitFor();
    await devtools.send("Input.dispatchKeyEvent", { type: "char", text: "\r", ...enter });
    await devtools.send("Input.dispatchKeyEvent", { type: "keyUp", ...enter });
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  it("is accessible and fits the window, in both themes and two window sizes", async () => {
    await lookAt(console, {
      name: "app-switcher",
      path: "/apps",
      async ready(page) {
        await page.getByRole("grid", { name: "Apps" }).waitFor();
        await pressUntil(page, ".", page.getByRole("dialog"));
        await page.getByRole("dialog").getByRole("row").nth(1).waitFor();
      },
    });
  });
});

describe("the overview", () => {
  it("shows a tile for each count of the last hour, and tiles for the gateway", async () => {
    await using opened = await console.open("/");
    const { page } = opened;
    await page.getByRole("button", { name: /^App / }).click();
    await page.getByRole("dialog", { name: "Switch app" }).getByRole("row").nth(1).click();
    for (const title of ["Published", "Duplicates", "Quarantined", "Rejected", "Error rate", "Durability"])
      await page.locator(".tile-title", { hasText: title }).first().waitFor();
  });
});

const ROW = ".table-row:not(.waiting)";

const VIEWS = [
  ["overview", "/", ".tile-value >> nth=8"],
  ["problems", "/problems", `${ROW}, .empty`],
  ["apps", "/apps", ROW],
  ["blueprints", "/blueprints", ROW],
  ["connections", "/connections", ROW],
  ["api-keys", "/api-keys", ROW],
  ["audit", "/audit", ROW],
  ["organization", "/organization", ROW],
] as const;

it.each(
  VIEWS,
)("the view %s is accessible and fits the window, in both themes and two window sizes", async (name, path, ready) => {
  await lookAt(console, { name, path, ready: (page) => page.locator(ready).first().waitFor() });
});

it("the sign-in page is accessible and fits the window, in both themes and two window sizes", async () => {
  await lookAt(console, {
    name: "sign-in",
    path: "/",
    key: null,
    ready: (page) => page.getByLabel("API key").waitFor(),
  });
});

it("a form on top of a detail panel is accessible and fits the window, in both themes and two window sizes", async () => {
  await lookAt(console, {
    name: "form",
    path: "/connections",
    async ready(page) {
      await page.locator(".table-row").first().click();
      await page.getByRole("button", { name: "Change" }).click();
      await page.getByRole("button", { name: "Save" }).waitFor();
    },
  });
});

it("a problem leads to its source and to the missing connection, and can be muted and noted", async () => {
  const app = await installApp(console.gateway, [
    {
      uid: "orders",
      kind: "polling",
      config: {
        connection: "required",
        request: { url: "https://api.example.com/orders" },
        itemsPath: "$",
        itemId: "$.id",
        discriminator: { by: "sequence", path: "$.id" },
      },
      events: [{ type: "order" }],
    },
  ]);
  await using opened = await console.open(`/problems?appId=${app.id}`);
  const { page } = opened;
  const row = page.getByRole("row").filter({ hasText: "Channel failing" });
  await expect
    .poll(
      async () => (await console.gateway.api<readonly unknown[]>("GET", `/problems?appId=${app.id}`)).length,
    )
    .toBe(1);
  await page.reload();
  await row.click();
  const panel = page.getByRole("complementary", { name: "Channel failing" });
  await panel.getByRole("link", { name: "Open source" }).waitFor();
  await expect
    .poll(() => panel.getByRole("link", { name: "connectionId" }).first().getAttribute("href"))
    .toBe("/docs/polling#with-oauth");
  await panel.getByRole("button", { name: "Add a note" }).click();
  const note = page.getByRole("dialog", { name: "Note" });
  await note.getByLabel("Note").fill("Ada asks the provider.");
  await note.getByRole("button", { name: "Save" }).click();
  await panel.getByText("Ada asks the provider.").waitFor();
  await panel.getByRole("button", { name: "Mute 1 h" }).click();
  await panel.getByRole("button", { name: "Unmute" }).waitFor();
  await row.waitFor({ state: "detached" });
  const [{ id = "" } = {}] = await console.gateway.api<readonly { readonly id: string }[]>(
    "GET",
    `/problems?appId=${app.id}`,
  );
  await lookAt(console, {
    name: "problem",
    path: `/problems?id=${id}`,
    ready: async (shown) => {
      await shown.getByText("1 muted problem").click();
      await shown.getByText("Muted until").waitFor();
    },
  });
  await panel.getByRole("button", { name: "Set connection" }).click();
  const form = page.getByRole("dialog", { name: "Connection of orders" });
  await form.getByLabel("Connection").selectOption({ label: "Example API" });
  await form.getByRole("button", { name: "Save" }).click();
  await panel.getByRole("button", { name: "Set connection" }).waitFor({ state: "detached" });
});
