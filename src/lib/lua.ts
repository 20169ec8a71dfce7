import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

export interface LuaScript {
  readonly text: string;
  /** SHA-1 digest of the script in hexadecimal, which EVALSHA expects. */
  readonly sha: string;
}

interface CommandSender {
  call(command: string, args: readonly (string | number)[]): Promise<unknown>;
}

/** Runs a script in Redis. In Redis Cluster, all of its keys must be in the same slot. */
export type RunLua = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

/**
 * Reads a Lua file, and replaces each line `-- @include <path>` with the file at that path. Paths are relative to the including
 * file.
 */
export function loadScript(file: URL): LuaScript {
  const text = readLua(file);
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** Returns a function that runs a Lua file in Redis. Uses EVALSHA, so that the script is only sent if Redis has not cached it. */
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
