import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createTestStores } from "../support/gateway.ts";
import { PROGRAM_ENV } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { readProcessIds } from "../support/supervised.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

const stores = opened(createTestStores);

it("greets the operator with the API key, although its first process is killed while the others start", async () => {
  const env = { ...PROGRAM_ENV, ...stores.env, INLET_PORT: "0", INLET_PROCESSES: "3" };
  const supervisor = spawn(process.execPath, [MAIN], { env, stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(supervisor, "exit");
  try {
    let output = "";
    supervisor.stdout.setEncoding("utf8").on("data", (chunk) => {
      output += chunk;
    });
    const hasRedis = (number: number) => output.includes(`"process":${number},"event":"redis.ready"`);
    await until(() => hasRedis(1));
    const [first] = await readProcessIds(supervisor.pid ?? 0);
    // The others are ready soon, long before a replacement of the first process.
    await until(() => hasRedis(2) && hasRedis(3));
    process.kill(first ?? 0, "SIGKILL");
    await until(() => output.includes('"event":"supervisor.ready"'));
    await until(() => output.includes("Inlet listens at"));
    expect(output).toContain("The first API key, shown only once:");
  } finally {
    supervisor.kill("SIGTERM");
    await exited;
  }
});
