import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";
import { createTestStores, startTestGateway, type TestGateway } from "./gateway.ts";
import { API_KEY } from "./gateway-process.ts";

/** A gateway and a folder in which a reader of the documentation pages works. */
export interface PastedPages extends AsyncDisposable {
  readonly gateway: TestGateway;
  /** The Redis socket, with the database number as `db`. */
  readonly redis: URL;
  readonly dir: string;
  /** Returns the shell blocks of pages as one script, with this gateway's key and addresses. */
  readonly scriptOf: (...names: readonly string[]) => string;
  /** Runs a script in the folder. Returns its standard output. */
  readonly run: (script: string) => Promise<string>;
  readonly paste: (...names: readonly string[]) => Promise<string>;
}

const MAIN = join(import.meta.dirname, "../../src/main.ts");

/** Lets a script call the command line as `npx inlet`, signed in to this gateway. */
export const signedInTo = (origin: string, dir: string): string => `
export INLET_URL=${origin} INLET_API_KEY=${API_KEY} XDG_CONFIG_HOME=${dir}/config
npx() { shift; "${process.execPath}" "${MAIN}" "$@"; }
`;

/** Returns a line of a script that waits until a shell condition is true, or fails after a minute. */
export const waitUntil = (condition: string): string =>
  `for _ in $(seq 600); do if ${condition}; then break; fi; sleep 0.1; done; ${condition}\n`;

export const readPage = (name: string): string =>
  readFileSync(new URL(`../../src/docs/${name}`, import.meta.url), "utf8");

/** Returns the shell blocks of a page that a reader can run as they are. */
export const shellBlocksOf = (text: string): string =>
  [...text.matchAll(/(?<!-->\n)^( *)```sh\n([\s\S]*?)^\1```/gm)]
    .map(([, indent = "", block = ""]) => outdent(block, indent))
    .join("\n");

/** Returns the program that a page shows after it names the file. */
export function programOf(page: string, file: string): string {
  const text = readPage(page);
  const after = text.slice(text.indexOf(`\`${file}\``));
  const [, indent = "", program] = /^( *)```(?:js|py)\n([\s\S]*?)^\1```/m.exec(after) ?? [];
  if (program === undefined) throw new Error(`${page} has no ${file}`);
  return outdent(program, indent);
}

const outdent = (block: string, indent: string): string =>
  block.replaceAll(new RegExp(`^${indent}`, "gm"), "");

export async function startPastedPages(): Promise<PastedPages> {
  await using starting = new AsyncDisposableStack();
  const stores = starting.use(await createTestStores());
  const redis = new URL(stores.env.REDIS_URL ?? "");
  const gateway = starting.use(
    await startTestGateway(
      { ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
      { handlersTiming: { firstRetryMs: 50, mostRetryMs: 100 } },
    ),
  );
  const dir = await mkdtemp(join(tmpdir(), "inlet-docs-"));
  starting.defer(() => rm(dir, { recursive: true, force: true }));

  function scriptOf(...names: readonly string[]): string {
    const script = shellBlocksOf(names.map(readPage).join(""))
      .replaceAll("ik_…", API_KEY)
      .replaceAll("http://127.0.0.1:8080", gateway.origin)
      .replaceAll(
        "redis-cli -s data/run/redis.sock",
        `redis-cli -s ${redis.pathname} -n ${redis.searchParams.get("db")}`,
      );
    expect(script).not.toContain("…");
    return script;
  }

  const run = async (script: string): Promise<string> => {
    const running = promisify(execFile)("sh", ["-euc", signedInTo(gateway.origin, dir) + script], {
      cwd: dir,
    });
    const { stdout } = await running.catch((error: Error) => {
      const notable = gateway.lines.filter(({ level }) => level !== "info");
      error.message += `\nLog of the gateway: ${JSON.stringify(notable.slice(-5))}`;
      throw error;
    });
    return stdout;
  };

  const owned = starting.move();
  return {
    gateway,
    redis,
    dir,
    scriptOf,
    run,
    paste: (...names) => run(scriptOf(...names)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export function expectInOrder(output: string, texts: readonly string[]): void {
  let at = 0;
  for (const text of texts) {
    const found = output.indexOf(text, at);
    expect(found, `${text} in ${output.slice(at)}`).toBeGreaterThanOrEqual(0);
    at = found + text.length;
  }
}
