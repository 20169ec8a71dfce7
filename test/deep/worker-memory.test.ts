import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { CEILING_MS } from "../support/until.ts";

const at = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);

// What has survived a collection is moved at once: small pieces are as many megabytes then as a large one.
test.each([
  100, 8_000_000,
])("a job that takes memory in pieces of %i numbers, again and again, ends its worker, not its process", async (numbers) => {
  // Of a process that does nothing else, and takes nothing with it where it ends.
  const program = `
    import { createWorkerQueue } from ${at("../../src/lib/worker-queue.ts")};
    const program = new URL(${at("../lib/tiny-worker.ts")});
    const bounds = { maxCpuMs: ${CEILING_MS}, maxQueuedPerLane: 1, maxHeapMiB: 64 };
    await using queue = createWorkerQueue({ program, name: "tiny", ...bounds });
    console.log((await queue.run({ kind: "eat", numbers: ${numbers} }, { lane: "a" })).kind);
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  expect(stdout).toBe("exceeded\n");
});
