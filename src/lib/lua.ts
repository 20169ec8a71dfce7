import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** A Lua script as Redis gets it. */
export interface LuaScript {
  readonly text: string;
  /** SHA-1 in hexadecimal, by which EVALSHA knows it. */
  readonly sha: string;
}

/** Anything that sends commands to Redis. */
interface CommandSender {
  call(command: string, args: readonly (string | number)[]): Promise<unknown>;
}

/** Runs a script. In Cluster all its keys must share a slot. */
export type RunLua = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

/** Reads a Lua file; a line `-- @include <path>` in it stands for the text of the file at that path from it. */
export function loadScript(file: URL): LuaScript {
  const text = readLua(file);
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** Reads a Lua file, to be run as `RunLua` says. */
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
