import { afterAll, beforeAll, expect, it } from "vitest";
import { installApp } from "../support/channels.ts";
import { lookAt, startTestConsole, type TestConsole } from "../support/console.ts";
import { callApi } from "../support/gateway-process.ts";
import type { Emulator } from "../support/providers/emulator.ts";
import { startGitHub } from "../support/providers/github.ts";

let console: TestConsole;
let github: Emulator;
beforeAll(async () => {
  github = await startGitHub({ clock: Date.now });
  console = await startTestConsole(
    { INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
    { registrarTiming: { tickMs: 50, settleMs: 100 } },
  );
});
afterAll(async () => {
  await console?.[Symbol.asyncDispose]();
  await github?.[Symbol.asyncDispose]();
});

/** Creates a channel that registers itself at the repository. */
async function givenRegistered(repo: string, token = github.token): Promise<string> {
  const { api } = console.gateway;
  const { id: connectionId } = await api<{ id: string }>("POST", "/connections", {
    name: "GitHub",
    kind: "bearer",
    config: { token },
    allowedOrigins: [github.url],
  });
  const app = await installApp(console.gateway, []);
  const registration = { connectionId, params: { owner: "acme", repo }, baseUrl: github.url };
  await api("POST", `/apps/${app.id}/channels`, {
    uid: "hooks",
    kind: "webhook",
    config: { preset: "github", registration },
    events: [{ type: "push" }],
  });
  return app.id;
}

const hooksOf = (url: string | null) => github.hooks().filter(({ address }) => address === url);

it("a newcomer creates a connection and registers a repository in one form, and deleting the channel removes the webhook", async () => {
  const { apiKey } = await console.gateway.api<{ apiKey: { key: string } }>("POST", "/organizations", {
    name: "Newcomer",
  });
  const { key } = apiKey;
  await using opened = await console.open("/start?preset=github", { key });
  const { page, complaints } = opened;
  await page.getByLabel("How events arrive").selectOption("repository");
  await page.getByText("Webhooks: write", { exact: true }).waitFor();
  await page.getByText("https://api.github.com", { exact: true }).waitFor();
  await page.getByLabel("URL of the API").fill(github.url);
  await page.getByRole("button", { name: "Create a connection" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a connection" });
  await dialog.getByLabel("Token", { exact: true }).fill(github.token);
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByLabel("Owner", { exact: true }).fill("not an owner");
  await page.getByLabel("Repository", { exact: true }).fill("demo");
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.locator(".field-error").getByText("must match").waitFor();
  expect(complaints.splice(0)).toEqual([expect.stringContaining("400")]);
  await page.getByLabel("Owner", { exact: true }).fill("octo");
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.locator(".badge").getByText("active", { exact: true }).waitFor();
  expect(await page.getByLabel("Webhook secret").count()).toBe(0);

  const appId = new URL(page.url()).searchParams.get("app");
  const { url } = await callApi<{ url: string }>(
    console.gateway.origin,
    "GET",
    `/apps/${appId}/channels/github`,
    undefined,
    key,
  );
  expect(hooksOf(url)).toMatchObject([{ events: ["push"], secret: expect.any(String) }]);
  await expect
    .poll(async () => (await github.deliver({ ref: "refs/heads/main" }, "push")).map(({ status }) => status))
    .toContain(200);
  await page.getByRole("link", { name: "See the events" }).click();
  await page.locator('[data-index="0"]').getByText("push", { exact: true }).waitFor();

  await page.getByRole("link", { name: "Channels" }).click();
  // The list of events stays visible until the code of the next view is loaded.
  await page.getByRole("grid", { name: "Channels" }).locator('[data-index="0"]').click();
  const detail = page.getByRole("complementary", { name: "github" });
  await detail.getByRole("button", { name: "Delete" }).click();
  await page.getByText("Inlet also removes its webhook at the provider.").waitFor();
  await page.getByLabel("to continue").fill("github");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect.poll(() => hooksOf(url)).toEqual([]);
  // The panel may have asked for the registration once more before it was closed.
  complaints.splice(0, complaints.length, ...complaints.filter((one) => !one.includes("404")));
});

it("the form adds a channel to an existing app, and registers an organization for all event types", async () => {
  const appId = await givenRegistered("existing");
  await using opened = await console.open(`/start?preset=github`);
  const { page } = opened;
  await page.getByLabel("How events arrive").selectOption("organization");
  await page.getByLabel("Organization", { exact: true }).fill("acme");
  await page.getByLabel("URL of the API").fill(github.url);
  await page.getByLabel("Connection").selectOption({ index: 1 });
  await page.getByLabel("Event types, one per line").fill("");
  await page.locator(".make-channel").getByLabel("App").selectOption(appId);
  await page.getByRole("button", { name: "Create the channel" }).click();
  await page.locator(".badge").getByText("active", { exact: true }).waitFor();
  const { url, config } = await console.gateway.api<{ url: string; config: object }>(
    "GET",
    `/apps/${appId}/channels/github`,
  );
  expect(config).toMatchObject({ registration: { target: "organization", params: { org: "acme" } } });
  expect(hooksOf(url)).toMatchObject([{ events: ["*"] }]);
});

it("the channel view shows the registration, checks it, shows its requests, and creates it again", async () => {
  const appId = await givenRegistered("shown");
  const registration = () =>
    console.gateway.api<{ providerId: string; checkedAt: string }>(
      "GET",
      `/apps/${appId}/channels/hooks/registration`,
    );
  await using opened = await console.open(`/apps/${appId}/channels?channel=hooks`);
  const { page } = opened;
  const panel = page.getByRole("complementary", { name: "hooks" });
  const status = panel.getByRole("status").filter({ hasText: "active" });
  await status.waitFor();
  const { providerId, checkedAt } = await registration();
  await panel.getByText(providerId, { exact: true }).waitFor();
  await panel.getByRole("button", { name: "Check now" }).click();
  await expect.poll(async () => (await registration()).checkedAt > checkedAt).toBe(true);
  await panel.getByRole("button", { name: "Show requests" }).click();
  const requests = page.getByRole("dialog", { name: "Requests to the provider" });
  const creation = await requests.getByRole("figure", { name: "create" }).textContent();
  expect(creation).toContain(`POST ${github.url}/repos/acme/shown/hooks`);
  expect(creation).toContain('"secret": "***"');
  await page.keyboard.press("Escape");
  github.drop(providerId);
  await panel.getByRole("button", { name: "Recreate" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Recreate" }).click();
  await expect.poll(async () => (await registration()).providerId).not.toBe(providerId);
  await status.waitFor();
});

it("the channel view shows why a registration failed, and no actions without apps.write", async () => {
  const appId = await givenRegistered("denied", github.limitedToken);
  const { key } = await console.gateway.api<{ key: string }>("POST", "/iam/api-keys", {
    name: "reader",
    permissions: ["apps.read"],
  });
  await using opened = await console.open(`/apps/${appId}/channels?channel=hooks`, { key });
  const { page } = opened;
  const panel = page.getByRole("complementary", { name: "hooks" });
  await panel.getByText("Webhooks: write").waitFor();
  await panel.getByRole("status").getByText("failed", { exact: true }).waitFor();
  expect(await panel.getByRole("button", { name: "Check now" }).count()).toBe(0);
});

it("the views of a registration are accessible and fit the window, in both themes and two window sizes", async () => {
  await lookAt(console, {
    name: "register",
    path: "/start?preset=github",
    ready: async (page) => {
      await page.getByLabel("How events arrive").selectOption("repository");
      await page.getByRole("button", { name: "Create a connection" }).waitFor();
    },
  });
  await lookAt(console, {
    name: "register-connection",
    path: "/start?preset=github",
    ready: async (page) => {
      await page.getByLabel("How events arrive").selectOption("repository");
      await page.getByRole("button", { name: "Create a connection" }).click();
      await page.getByRole("dialog").getByLabel("Token", { exact: true }).waitFor();
    },
  });
  const [registered, denied] = [
    await givenRegistered("seen"),
    await givenRegistered("unseen", github.limitedToken),
  ];
  await lookAt(console, {
    name: "registered",
    path: `/start?preset=github&app=${registered}&channel=hooks`,
    ready: (page) => page.getByText("active", { exact: true }).waitFor(),
  });
  await lookAt(console, {
    name: "registration-failed",
    path: `/apps/${denied}/channels?channel=hooks`,
    ready: (page) => page.getByRole("status").getByText("failed", { exact: true }).waitFor(),
  });
  await lookAt(console, {
    name: "registration-requests",
    path: `/apps/${registered}/channels?channel=hooks`,
    ready: async (page) => {
      await page.getByRole("button", { name: "Show requests" }).click();
      await page.getByRole("figure", { name: "create" }).waitFor();
    },
  });
});
