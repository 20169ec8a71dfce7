import { execFile } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import type { AxeResults } from "axe-core";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { launchChromium } from "./chromium.ts";
import {
  createTestStores,
  startTestGateway,
  type TestGateway,
  type TestGatewayDeps,
  type TestStores,
} from "./gateway.ts";
import { API_KEY } from "./gateway-process.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const SCREENSHOTS = join(ROOT, "test", "browser", "screenshots");

export type Theme = "light" | "dark";

/** A gateway with its console, and a browser to open it in. */
export interface TestConsole extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly stores: TestStores;
  readonly browser: Browser;
  /** Opens this path below `/console` and signs in. */
  readonly open: (path?: string, options?: OpenOptions) => Promise<ConsolePage>;
}

export interface OpenOptions {
  /** Default: a key with `*`. `null` skips the sign-in. */
  readonly key?: string | null;
  readonly theme?: Theme;
  readonly width?: number;
  readonly timeZone?: string;
  /** Allows a test to add a script (axe) to the page. All other pages run under their own policy. */
  readonly bypassCsp?: boolean;
}

/** An open page. Disposal closes it with its context, and fails when there are unexpected complaints. */
export interface ConsolePage extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Script and console errors, policy violations, and requests to other origins. A test removes those that it expects. */
  readonly complaints: string[];
}

/** Builds the console when it is not up to date, as `config/setup.sh` does. */
export async function buildConsole(): Promise<void> {
  await promisify(execFile)(process.execPath, [join(ROOT, "config", "console", "build.ts")]);
}

export async function startTestConsole(
  env: Readonly<Record<string, string>> = {},
  deps: TestGatewayDeps = {},
): Promise<TestConsole> {
  await using starting = new AsyncDisposableStack();
  await buildConsole();
  const stores = starting.use(await createTestStores());
  const gateway = starting.use(await startTestGateway({ ...stores.env, ...env }, deps));
  const browser = await launchChromium();
  starting.defer(() => browser.close());
  const owned = starting.move();
  return {
    gateway,
    stores,
    browser,
    open: (path = "/", options = {}) => openPage(browser, gateway.origin, path, options),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function openPage(
  browser: Browser,
  origin: string,
  path: string,
  { key = API_KEY, theme = "light", width = 1440, timeZone, bypassCsp = false }: OpenOptions,
): Promise<ConsolePage> {
  const context = await browser.newContext({
    viewport: sizeOf(width),
    colorScheme: theme,
    bypassCSP: bypassCsp,
    ...(timeZone === undefined ? {} : { timezoneId: timeZone }),
  });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`${error.message}\n${error.stack}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !/^(data|blob):/.test(url)) complaints.push(`requested ${url}`);
  });
  await page.goto(`${origin}/console${path}`);
  if (key !== null) await signIn(page, key);
  return {
    page,
    context,
    complaints,
    async [Symbol.asyncDispose]() {
      await context.close();
      expect(complaints).toEqual([]);
    },
  };
}

export async function signIn(page: Page, key = API_KEY): Promise<void> {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.locator("#nav").waitFor({ state: "attached" });
}

/** Presses a shortcut until it has opened something. A page handles shortcuts after its first frame, and some only with loaded apps. */
export const pressUntil = (page: Page, keys: string, opened: Locator): Promise<void> =>
  expect
    .poll(async () => {
      await page.locator("body").press(keys);
      return opened.count();
    })
    .toBeGreaterThan(0);

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core"), "utf8");

/** Returns the serious findings of axe-core on the current page, as rule and element. The page must be opened with `bypassCsp`. */
export async function seriousFindings(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate("'axe' in window"))) await page.addScriptTag({ content: AXE });
  const { violations } = (await page.evaluate("axe.run()")) as AxeResults;
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} ${target.join(" ")}: ${failureSummary}`),
    );
}

/** Checks a view in each theme at both widths: no serious axe finding, no horizontal scrolling. Also takes screenshots. */
export async function lookAt(
  console: TestConsole,
  view: {
    readonly name: string;
    readonly path: string;
    readonly key?: null;
    readonly ready: (page: Page) => Promise<unknown>;
  },
): Promise<void> {
  await mkdir(SCREENSHOTS, { recursive: true });
  await using opened = await console.open(view.path, {
    bypassCsp: true,
    ...(view.key === null && { key: null }),
  });
  const { page } = opened;
  await view.ready(page);
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    for (const width of [1440, 360]) {
      await page.setViewportSize(sizeOf(width));
      // Waits until elements that depend on the width are redrawn.
      await page.evaluate(
        "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))",
      );
      await page.screenshot({ path: join(SCREENSHOTS, `${view.name}-${theme}-${width}.png`) });
      expect([theme, width, await seriousFindings(page)]).toEqual([theme, width, []]);
      const wide = await page.evaluate("document.documentElement.scrollWidth");
      expect([theme, width, Number(wide) <= width]).toEqual([theme, width, true]);
    }
  }
}

const sizeOf = (width: number) => ({ width, height: width < 600 ? 740 : 900 });
