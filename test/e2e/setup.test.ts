import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { runSetUp } from "../../src/cli/apply-set-up.ts";
import { CommandError } from "../../src/cli/exit.ts";
import { loadConfig } from "../../src/config/load.ts";
import { createLog } from "../../src/log.ts";
import { runInlet } from "../support/command.ts";
import { describeDeep } from "../support/deep-run.ts";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { PROGRAM_ENV } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";

const ROOT = join(import.meta.dirname, "../..");
const EXAMPLE = join(ROOT, "config/examples/github.setup.json");
const SECRET = "known-to-both-sides";

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "inlet-setup-"));
});
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));

interface Applied {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the set-up in the test's process, as `src/main.ts` does with these settings. */
async function apply(
  env: Readonly<Record<string, string>>,
  file: string,
  { planOnly = false } = {},
): Promise<Applied & { readonly end: number }> {
  const loaded = loadConfig(env);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
  const output = { stdout: "", stderr: "" };
  const given = {
    log: createLog({ level: "silent" }),
    signal: new AbortController().signal,
    async print(text: string) {
      output.stdout += text;
    },
  };
  const end = await runSetUp(loaded.value, { file, planOnly, isJson: false, env }, given).catch(
    (error: unknown) => {
      if (!(error instanceof CommandError)) throw error;
      output.stderr += `${error.message}\n`;
      return error.exitCode;
    },
  );
  return { end, ...output };
}

function runByCommand(
  command: "apply" | "plan",
  env: Readonly<Record<string, string>>,
): Promise<Applied & { readonly code: number }> {
  const main = [join(ROOT, "src/main.ts"), command, "--file", EXAMPLE];
  const options = { env: { ...PROGRAM_ENV, INLET_LOG_LEVEL: "warn", ...env } };
  return new Promise((resolve) => {
    execFile(process.execPath, main, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describe("applying a config file", () => {
  it("changes the settings of gateways that already run on the same database", async () => {
    await using stores = await createTestStores();
    await using gateway = await startTestGateway(stores.env);
    const env = { ...stores.env, GITHUB_WEBHOOK_SECRET: SECRET };
    const planned = await apply(env, EXAMPLE, { planOnly: true });
    expect(planned).toMatchObject({
      end: 2,
      stdout: expect.stringMatching(/^Would do:/),
      stderr: "",
    });
    const first = await apply(env, EXAMPLE);
    expect(first).toMatchObject({
      end: 0,
      stdout: expect.stringContaining("Done: 5 changed."),
      stderr: "",
    });

    const apps = await gateway.api<{ id: string; uid: string }[]>("GET", "/apps");
    const app = apps.find(({ uid }) => uid === "github");
    const [channel] = await gateway.api<{ id: string }[]>("GET", `/apps/${app?.id}/channels`);
    const body = '{"ref":"main"}';
    const deliver = async (secret: string, id: string): Promise<number> => {
      const signature = createHmac("sha256", secret).update(body).digest("hex");
      const headers = {
        "content-type": "application/json",
        "x-github-event": "push",
        "x-github-delivery": id,
        "x-hub-signature-256": `sha256=${signature}`,
      };
      return (await fetch(`${gateway.origin}/hooks/${channel?.id}`, { method: "POST", headers, body }))
        .status;
    };
    expect(await deliver(SECRET, "1")).toBe(200);

    const rotated = await apply({ ...env, GITHUB_WEBHOOK_SECRET: "another" }, EXAMPLE);
    expect(rotated.stdout).toMatch(/~ update +channel hooks .*: config\.secrets \(secret\)/);
    expect(rotated.stdout + rotated.stderr).not.toContain("another");
    await until(async () => (await deliver("another", "2")) === 200);
    expect(await deliver(SECRET, "3")).toBe(401);
  });

  it("can be planned first, with an exit code that tells whether anything would change", async () => {
    await using stores = await createTestStores();
    await using _ = await startTestGateway(stores.env);
    const env = { ...stores.env, GITHUB_WEBHOOK_SECRET: SECRET, INLET_LOG_LEVEL: "fatal" };
    for (const output of [process.stdout, process.stderr])
      vi.spyOn(output, "write").mockImplementation((_, ...more) => {
        for (const one of more) if (typeof one === "function") one();
        return true;
      });
    const plan = async (file: string) => (await runInlet(["plan", "-f", file], { env })).code;
    expect(await plan(EXAMPLE)).toBe(2);
    await apply(env, EXAMPLE);
    expect(await plan(EXAMPLE)).toBe(0);
    expect(await plan(join(dir, "missing.json"))).toBe(1);
  });

  it("fails before any connection is opened if the config file is missing or invalid", async () => {
    // No server listens at this database address.
    const env = { DATABASE_URL: "postgresql://127.0.0.1:1/none", INLET_MASTER_KEY: "f".repeat(64) };
    const file = join(dir, "wrong.json");
    writeFileSync(file, "{}");
    for (const refused of [file, join(dir, "missing.json")]) {
      expect(await apply(env, refused)).toMatchObject({ end: 2, stdout: "" });
    }
  });
});

describeDeep("apply", () => {
  it("starts the embedded servers if no gateway is running, and reports the result in its exit code", async () => {
    const own = { INLET_DATA_DIR: join(dir, "data") };
    const env = { ...own, GITHUB_WEBHOOK_SECRET: SECRET };
    expect(await runByCommand("plan", own)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("GITHUB_WEBHOOK_SECRET, which is not set"),
    });
    const done = await runByCommand("apply", env);
    expect([done.code, done.stdout]).toEqual([0, expect.stringMatching(/default \(shown only once\): ik_/)]);

    await using gateway = await startTestGateway(own);
    expect((await runByCommand("apply", env)).code).toBe(3);
    const apps = await gateway.api<{ uid: string; isSystem: boolean }[]>("GET", "/apps");
    const declared = apps.filter(({ isSystem }) => !isSystem);
    expect(declared.map(({ uid }) => uid).sort()).toEqual(["github", "sensors"]);
  });
});
