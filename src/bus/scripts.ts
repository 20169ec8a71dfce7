import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { RedisCaller } from "./general-connection.ts";

/** A Lua script as Redis gets it. */
export interface LuaScript {
  readonly text: string;
  /** SHA-1 in hexadecimal, by which EVALSHA knows it. */
  readonly sha: string;
}

/** Reads `<name>.lua` of this folder; a line `-- @include <other>` stands for that file's text. */
export function loadScript(name: string): LuaScript {
  const text = readLua(name);
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** Runs a script on the general connection. In Cluster all its keys must share a slot. */
export async function runScript(
  redis: RedisCaller,
  script: LuaScript,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await redis.call("evalsha", [script.sha, keys.length, ...keys, ...args]);
  } catch (error) {
    if (!isNoScript(error)) throw error;
    return redis.call("eval", [script.text, keys.length, ...keys, ...args]);
  }
}

export const isNoScript = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("NOSCRIPT");

function readLua(name: string): string {
  const source = readFileSync(new URL(`${name}.lua`, import.meta.url), "utf8");
  return source.replace(/^[ \t]*-- @include ([a-z-]+)$/gm, (_, other: string) => readLua(other));
}
