import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

export interface LuaScript {
  readonly text: string;
  /** SHA-1 digest in hexadecimal, by which EVALSHA identifies the script. */
  readonly sha: string;
}

interface CommandSender {
  call(command: string, args: readonly (string | number)[]): Promise<unknown>;
}

/** In Redis Cluster, all keys must be in the same slot. */
export type RunLua = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

/**
 * Reads a Lua file. Replaces each line `-- @include <path>` with the content of the file at that path, relative to the including
 * file.
 */
export function loadScript(file: URL): LuaScript {
  const text = readLua(file);
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** Returns a function that runs a Lua file in Redis. It uses EVALSHA while Redis has the script in its cache. */
export function luaScript(redis: CommandSender, file: URL): RunLua {
  const { text, sha } = loadScript(file);
  return async (keys, args) => {
    const rest = [keys.length, ...keys, ...args];
    try {
      return await redis.call("evalsha", [sha, ...rest]);
    } catch (error) {
      if (!isNoScript(error)) throw error;
      return redis.call("eval", [text, ...rest]);
    }
  };
}

export const isNoScript = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("NOSCRIPT");

function readLua(file: URL): string {
  const source = readFileSync(file, "utf8");
  return source.replace(/^[ \t]*-- @include (\S+)$/gm, (_, other: string) => readLua(new URL(other, file)));
}
