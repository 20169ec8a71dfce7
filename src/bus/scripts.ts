import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { RedisCaller } from "./connection/general-connection.ts";

/** A Lua script as Redis gets it. */
export interface LuaScript {
  readonly text: string;
  /** SHA-1 in hexadecimal, by which EVALSHA knows it. */
  readonly sha: string;
}

/** Reads a Lua file; a line `-- @include <path>` in it stands for the text of the file at that path from it. */
export function loadScript(file: URL): LuaScript {
  const text = readLua(file);
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

function readLua(file: URL): string {
  const source = readFileSync(file, "utf8");
  return source.replace(/^[ \t]*-- @include (\S+)$/gm, (_, other: string) => readLua(new URL(other, file)));
}
