import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** Source of a Lua script with all includes resolved. */
export interface LuaScript {
  readonly text: string;
  /** SHA-1 digest in hexadecimal, which identifies the script in EVALSHA. */
  readonly sha: string;
}

interface CommandSender {
  call(command: string, args: readonly (string | number)[]): Promise<unknown>;
}

/** Runs a script. In Redis Cluster, all keys must be in the same slot. */
export type RunLua = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

/**
 * Reads a Lua file. Replaces each line `-- @include <path>` with the content of that file; the path is relative to the
 * including file.
 */
export function loadScript(file: URL): LuaScript {
  const text = readLua(file);
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** Reads a Lua file and returns a function that runs it in Redis. Uses EVALSHA while Redis has cached the script. */
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
