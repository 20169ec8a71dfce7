import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

const PAGE = readFileSync(new URL("../../src/docs/reading.md", import.meta.url), "utf8");

/** Returns the page's code block of this language that contains the text. */
function block(language: string, holding: string): string {
  const found = [...PAGE.matchAll(/```(\w+)\n([\s\S]*?)```/g)].find(
    ([, name, text = ""]) => name === language && text.includes(holding),
  );
  if (!found?.[2]) throw new Error(`the page has no ${language} with ${holding}`);
  return found[2];
}

let dir: string;
let children: ChildProcess[];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "inlet-docs-"));
  await symlink(join(import.meta.dirname, "../../node_modules"), join(dir, "node_modules"));
  children = [];
});
afterEach(async () => {
  for (const child of children) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  }
  await rm(dir, { recursive: true, force: true });
});

function start(command: string, args: string[], env: Record<string, string> = {}): { output: () => string } {
  const options = {
    cwd: dir,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"] as const,
  };
  const child = spawn(command, args, { ...options, stdio: [...options.stdio] });
  children.push(child);
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk;
  });
  return { output: () => output };
}

describe("the shell script for readers in the documentation", () => {
  it("reads new entries, entries that a dead reader left unacknowledged, and entries whose handling failed once", async () => {
    await using server = await startRedis();
    const { client, socketPath } = server;
    const [topic, sub] = ["events.o.apps.app.event_received.a.c.a type", "sub_1"];
    await client.xgroup("CREATE", topic, sub, "0-0", "MKSTREAM");
    await client.sadd(`inlet:sub:${sub}`, topic);
    await client.xadd(topic, "*", "id", "left", "data", "1");
    await client.xreadgroup("GROUP", sub, "dead", "COUNT", 1, "STREAMS", topic, ">");
    const script = block("sh", "XAUTOCLAIM")
      .replace("redis-cli -s data/run/redis.sock", `redis-cli -s ${socketPath}`)
      .replace("sub=sub_…", `sub=${sub}`)
      // Makes the first handling fail and the second succeed.
      .replace("handle() { cat; }", `handle() { cat; [ -e tried ] || { touch tried; false; }; }`)
      .replace(" 60000 ", " 100 ");
    await writeFile(join(dir, "reader.sh"), script);
    expect(script.split("\n").length).toBeLessThanOrEqual(23);
    const { output } = start("sh", ["reader.sh"]);
    await client.xadd(topic, "*", "id", "new", "data", '{\n  "n": 12345678901234567890\n}');
    await until(
      async () => Number((await client.xpending(topic, sub))[0]) === 0 && output().includes('"n": '),
    );
    expect(output()).toContain('  "n": 12345678901234567890');
    expect(output().match(/^left$/gm)?.length).toBeGreaterThanOrEqual(1);
  });
});
