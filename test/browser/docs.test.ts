import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Listener, startListener } from "../../src/gateway/listener.ts";
import { createDocs } from "../../src/http/docs/docs.ts";
import { readPresets } from "../../src/verify/presets.ts";
import { createTestApi, type TestApi } from "../support/api.ts";
import { launchChromium } from "../support/chromium.ts";
import type { OpenApi } from "../support/documented.ts";

let browser: Browser;
let api: TestApi;
let listener: Listener;
let origin: string;
beforeAll(async () => {
  browser = await launchChromium();
  api = await createTestApi();
  api.app.route("/", createDocs({ presets: readPresets() }));
  listener = await startListener({ host: "127.0.0.1", port: 0 }, (request) => api.app.fetch(request));
  origin = `http://127.0.0.1:${listener.port}`;
});
afterAll(async () => {
  await browser?.close();
  await listener?.[Symbol.asyncDispose]();
  await api?.[Symbol.asyncDispose]();
});

interface Visit {
  readonly page: Page;
  /** Requested addresses of other origins. */
  readonly foreignRequests: readonly string[];
  /** Script errors, console errors and warnings, and violations of the page's content security policy. */
  readonly complaints: readonly string[];
}

async function visit(place = ""): Promise<Visit> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(120_000);
  const foreignRequests: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:")) foreignRequests.push(url);
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  await page.goto(`${origin}/docs/reference${place}`);
  await page.locator(".opblock-tag").first().waitFor();
  return { page, foreignRequests, complaints };
}

const search = (page: Page, phrase: string): Promise<void> =>
  page.getByRole("searchbox", { name: "Search operations" }).fill(phrase);

const shown = (page: Page): Promise<readonly (string | undefined)[]> =>
  page
    .locator(".opblock")
    .evaluateAll((all: readonly { readonly id: string }[]) => all.map(({ id }) => id.split("-").at(-1)));

it("the Copy button on a documentation page copies a whole code block", async () => {
  const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(`${origin}/docs/quickstart`);
  const frame = page.locator(".block", { hasText: "cat > shop.json" });
  const [block, button] = [frame.locator("pre"), frame.getByRole("button")];
  await button.click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate<string>("navigator.clipboard.readText()");
  expect(copied).toMatch(/^cat > shop\.json.*\n[\s\S]*\n$/);
  expect(copied).toBe(await block.textContent());
  await context.close();
});

it("the API reference shows only its headings when it opens, and needs fewer than six requests for that", async () => {
  const { page } = await visit();
  const document: OpenApi = await (await fetch(`${origin}/v1/openapi.json`)).json();
  const headings = await page.locator(".opblock-tag").evaluateAll((all) => all.map((one) => one.dataset.tag));
  expect(headings).toEqual(document.tags.map(({ name }: OpenApi) => name));
  expect(await page.locator(".opblock").count()).toBe(0);
  expect(await page.evaluate("performance.getEntriesByType('resource').length")).toBeLessThan(6);
  await page.close();
});

it("the API reference collapses the groups that have no effect on events, and opens one for a search or a link", async () => {
  const { page, complaints } = await visit();
  const groups = page.locator("details");
  expect(await groups.locator("summary h2").allTextContents()).toEqual(["Access", "Platform"]);
  const isShown = (tag: string): Promise<boolean> => page.locator(`[data-tag="${tag}"]`).isVisible();
  expect(await Promise.all(["Hooks", "Roles", "Rooms"].map(isShown))).toEqual([true, false, false]);
  await groups.last().locator("summary").click();
  await page.locator('[data-tag="Rooms"]').waitFor();
  expect(await groups.last().locator("summary").textContent()).toContain("larger platform");
  await search(page, "createForm");
  await page.locator("#operations-Forms-createForm").waitFor();
  await expect.poll(() => shown(page)).toEqual(["createForm"]);
  expect(complaints).toEqual([]);
  await page.close();
  const linked = await visit("#/Telephony/registerPhoneNumber");
  await linked.page.locator("#operations-Telephony-registerPhoneNumber").waitFor();
  await linked.page.close();
});

it("the search of the API reference finds operations by words of their path, method, name or heading", async () => {
  const { page, complaints } = await visit();
  await search(page, "POST channels/");
  await page.locator(".opblock").first().waitFor();
  await expect.poll(() => shown(page)).toEqual(expect.arrayContaining(["pauseChannel", "rotateChannel"]));
  await expect.poll(() => shown(page)).not.toContain("listChannels");
  await search(page, "Blueprints change");
  await page.locator("#operations-Blueprints-updateBlueprint").waitFor();
  await expect.poll(() => shown(page)).toEqual(["updateBlueprint", "updateIntake"]);
  await search(page, "nothing of that name");
  await expect.poll(() => page.locator(".opblock, .opblock-tag").count()).toBe(0);
  await search(page, "");
  await page.locator(".opblock-tag").first().waitFor();
  expect([await shown(page), complaints]).toEqual([[], []]);
  await page.close();
});

it("the API reference opens the operation that the URL fragment names", async () => {
  const { page } = await visit("#/Channels/createChannel");
  const opened = page.locator("#operations-Channels-createChannel");
  await opened.locator(".model-example").first().waitFor();
  await expect.poll(() => opened.textContent()).toContain('"kind": "webhook"');
  await page.close();
});

it("the API reference can show every operation, and requests nothing from other hosts", async () => {
  const { page, foreignRequests, complaints } = await visit();
  await search(page, "/");
  await page.locator(".opblock").first().waitFor();
  const document: OpenApi = await (await fetch(`${origin}/v1/openapi.json`)).json();
  const count = Object.values<object>(document.paths)
    .flatMap(Object.keys)
    .filter((key) => key !== "servers").length;
  await expect.poll(() => page.locator(".opblock").count()).toBe(count);
  await expect.poll(() => page.locator(".info h2").textContent()).toContain("Inlet");
  const opened = page.locator("#operations-Blueprints-createBlueprint");
  await opened.click();
  await opened.locator(".model-example").first().waitFor();
  await expect.poll(() => opened.textContent()).toContain("blueprints.write");
  const screenshot = process.env.INLET_TEST_SCREENSHOT;
  if (screenshot !== undefined) await page.screenshot({ path: screenshot });
  expect(foreignRequests).toEqual([]);
  expect(complaints).toEqual([]);
  await page.close();
});

it("the API reference sends a request with the token that the user entered, and does not store the token", async () => {
  const token = await api.keyWith("blueprints.read");
  const { page, foreignRequests, complaints } = await visit();
  await page.locator("button.authorize").first().click();
  await page.locator(".auth-container input").fill(token);
  await page.locator(".auth-btn-wrapper button.authorize").click();
  await page.locator(".auth-btn-wrapper .btn-done").click();
  await search(page, "listBlueprints");
  const operation = page.locator("#operations-Blueprints-listBlueprints");
  await operation.locator(".opblock-summary-control").click();
  await operation.locator(".try-out__btn").click();
  await operation.locator("button.execute").click();
  const status = operation.locator(".live-responses-table .response td.response-col_status");
  await expect.poll(() => status.textContent()).toContain("200");
  const kept = await page.evaluate(
    "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])",
  );
  expect(kept).not.toContain(token);
  expect([foreignRequests, complaints]).toEqual([[], []]);
  await page.close();
});

it("the Content-Security-Policy of the API reference blocks inline scripts and scripts from other hosts", async () => {
  const { headers } = await fetch(`${origin}/docs/reference`);
  const policy = headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  const { page } = await visit();
  const injected = await page.evaluate(`
    const script = document.createElement("script");
    script.textContent = "window.injected = true";
    document.body.append(script);
    "injected" in window;
  `);
  expect(injected).toBe(false);
  await page.close();
});
