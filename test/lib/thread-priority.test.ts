import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const MODULE = new URL("../../src/lib/thread-priority.ts", import.meta.url).href;
/** Of a process of its own, as it would stay so: the priorities of its threads, by their names. */
const PROGRAM = `
  import { readdir, readFile } from "node:fs/promises";
  import { getPriority } from "node:os";
  import { putPoolBehindOtherThreads } from ${JSON.stringify(MODULE)};
  await putPoolBehindOtherThreads();
  const of = async (id) => [(await readFile("/proc/self/task/" + id + "/comm", "utf8")).trim(), getPriority(Number(id))];
  const all = await Promise.all((await readdir("/proc/self/task")).map(of));
  console.log(JSON.stringify({ own: getPriority(process.pid), all }));
`;

// Elsewhere than on Linux a thread has no priority of its own, and nothing is changed.
test.runIf(process.platform === "linux")(
  "the threads that unpack bodies go behind the others of their process, whose priority stays",
  async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", PROGRAM]);
    const { own, all } = JSON.parse(stdout) as {
      readonly own: number;
      readonly all: readonly (readonly [name: string, nice: number])[];
    };
    const niceOf = (isPool: boolean) =>
      new Set(all.filter(([name]) => (name === "libuv-worker") === isPool).map(([, nice]) => nice));
    // 19 is the last that there is.
    expect(niceOf(true)).toEqual(new Set([Math.min(19, own + 5)]));
    expect(niceOf(false)).toEqual(new Set([own]));
  },
);
