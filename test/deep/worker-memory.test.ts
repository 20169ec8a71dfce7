import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { CEILING_MS } from "../support/until.ts";

const at = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);

// Objects that survive a collection are moved immediately, so small pieces use as much memory as one large piece.
test.each([
  100, 1_000_000, 8_000_000,
])("a job that allocates arrays of %i numbers until memory is exhausted ends its worker thread, but not the process, and the next job gets a new worker", async (numbers) => {
  // Runs in a separate process, so that a crash would not end the test's process.
  const program = `
    import { createWorkerQueue } from ${at("../../src/lib/worker-queue.ts")};
    const program = new URL(${at("../lib/tiny-worker.ts")});
    const bounds = { maxCpuMs: ${CEILING_MS}, maxQueuedPerLane: 2, maxHeapMiB: 64 };
    await using queue = createWorkerQueue({ program, name: "tiny", ...bounds });
    const eaten = queue.run({ kind: "eat", numbers: ${numbers} }, { lane: "a" });
    const next = queue.run({ kind: "echo" }, { lane: "a" });
    console.log((await eaten).kind, (await next).kind);
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  expect(stdout).toBe("exceeded echoed\n");
});
