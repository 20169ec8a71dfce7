import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startSharedStores } from "../support/stores.ts";
import { until } from "../support/until.ts";

const ROOT = join(import.meta.dirname, "../..");
const EXAMPLE = join(ROOT, "config/example.setup.json");
const SECRET = "known-to-both-sides";

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "inlet-setup-"));
});
afterAll(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function apply(env: Readonly<Record<string, string>>, ...argv: string[]): Promise<Ended> {
  const main = [join(ROOT, "src/main.ts"), "--apply", ...argv];
  const options = { env: { PATH: process.env.PATH, INLET_LOG_LEVEL: "warn", ...env } };
  return new Promise((resolve) => {
    execFile(process.execPath, main, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describe("--apply", () => {
  it("is in force within two seconds on gateways that run on the same database", async () => {
    await using stores = await startSharedStores();
    await using gateway = await startGatewayProcess({ ...stores.env, INLET_LOG_LEVEL: "warn" });
    const env = { ...stores.env, GITHUB_WEBHOOK_SECRET: SECRET };
    const first = await apply(env, EXAMPLE);
    expect(first).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("Done: 5 changed.") });

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

  it("works on servers of its own while no gateway has them, and ends with what to tell a script", async () => {
    const own = { INLET_DATA_DIR: join(dir, "data") };
    const env = { ...own, GITHUB_WEBHOOK_SECRET: SECRET };
    expect(await apply(own, EXAMPLE, "--plan")).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("GITHUB_WEBHOOK_SECRET, which is not set"),
    });
    expect((await apply(env, EXAMPLE, "--plan")).code).toBe(0);
    const done = await apply(env, EXAMPLE);
    expect([done.code, done.stdout]).toEqual([0, expect.stringMatching(/default, shown this once: ik_/)]);

    const file = join(dir, "wrong.json");
    writeFileSync(file, "{}");
    expect((await apply(env, file)).code).toBe(2);
    expect((await apply(env, join(dir, "missing.json"))).code).toBe(2);

    await using gateway = await startGatewayProcess({ ...own, INLET_LOG_LEVEL: "warn" });
    expect((await apply(env, EXAMPLE)).code).toBe(3);
    const apps = await gateway.api<{ uid: string }[]>("GET", "/apps");
    expect(apps.map(({ uid }) => uid).sort()).toEqual(["github", "sensors"]);
  });
});
