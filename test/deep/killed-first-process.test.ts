import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createTestStores } from "../support/gateway.ts";
import { PROGRAM_ENV } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { readProcessIds } from "../support/supervised.ts";
import { until } from "../support/until.ts";

const HELD = join(import.meta.dirname, "held-gateway.ts");

const stores = opened(createTestStores);

it("greets the operator with the API key, although the first process is killed while the others start, and another one before it prints", async () => {
  const dir = await mkdtemp(join(tmpdir(), "inlet-held-"));
  const env = { ...PROGRAM_ENV, ...stores.env, INLET_PORT: "0", INLET_PROCESSES: "3", HELD_DIR: dir };
  const supervisor = spawn(process.execPath, [HELD], { env, stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(supervisor, "exit");
  try {
    let output = "";
    supervisor.stdout.setEncoding("utf8").on("data", (chunk) => {
      output += chunk;
    });
    const findEnd = (pid: number): string | undefined =>
      output
        .split("\n")
        .find((line) => line.includes('"event":"process.ended"') && line.includes(`:${pid},`));
    const readPid = async (name: string): Promise<number> => Number(await readFile(join(dir, name), "utf8"));

    // The supervisor starts the others once the first process is ready.
    await until(async () => (await readProcessIds(supervisor.pid ?? 0)).length === 3);
    const first = await readPid("first");
    process.kill(first, "SIGKILL");
    await until(() => findEnd(first) !== undefined);
    expect(output).not.toContain("Inlet listens at");

    await writeFile(join(dir, "released"), "");
    await until(() => output.includes("The first API key, shown only once:"));
    const greeter = await readPid("greeter");
    await until(() => findEnd(greeter) !== undefined);
    expect(findEnd(greeter)).toContain('"reason":"SIGKILL"');
    expect(output.match(/Inlet listens at/g)).toHaveLength(1);
  } finally {
    supervisor.kill("SIGTERM");
    await exited;
    await rm(dir, { recursive: true });
  }
});
