import { createHash } from "node:crypto";
import { type Redis, ReplyError } from "ioredis";
import { type LuaScript, loadScript } from "../../src/lib/lua.ts";
import { BEGINNING_MS, Process, type World } from "./world.ts";

/** A command that the server has executed. */
export interface Executed {
  readonly by: string;
  /** Key of the script in `FILES`, or the command name. */
  readonly name: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly reply: unknown;
}

/** Changes the text of a script, to test that the simulation detects a broken one. */
export type Breakage = (text: string) => string;

/**
 * Lua code that replaces TIME and the automatic ids of XADD. Takes the virtual time from the last argument of the script. Ids never
 * decrease within a stream.
 */
const PRELUDE = `
local ms = table.remove(ARGV)
local function virtualTime()
  return { math.floor(tonumber(ms) / 1000), tonumber(ms) % 1000 * 1000 }
end
local function virtualId(key)
  local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  local lastMs = last and string.match(last[1], '^%d+') or '0'
  return (tonumber(lastMs) > tonumber(ms) and lastMs or ms) .. '-*'
end
`;

/** Returns the script with its clock replaced by the virtual one. */
function useVirtualClock(text: string): string {
  const [, shebang = "", rest = text] = /^(#!.*\n)([\s\S]*)$/.exec(text) ?? [];
  const changed = rest
    .replace(/\b(?:redis\.)?call\(\s*(['"])TIME\1\s*\)/gi, "virtualTime()")
    .replace("topic.id or '*'", "topic.id or virtualId(topic.key)");
  return `${shebang}${PRELUDE.replaceAll("\n", " ")}${changed}`;
}

const FILES = {
  takeOver: "sources/source-take-over.lua",
  stamp: "sources/source-stamp.lua",
  renew: "sources/rebalance.lua",
  end: "sources/source-end.lua",
  publish: "publish/publish.lua",
} as const;
const NAMES = new Map(
  Object.entries(FILES).map(([name, file]) => [
    loadScript(new URL(`../../src/bus/${file}`, import.meta.url)).sha,
    name,
  ]),
);

/** A real Redis that runs the product's scripts on the clock of the simulation. */
export class VirtualRedis {
  readonly process: Process;
  readonly world: World;
  /** Offset of its clock from the true time. */
  skewMs = 0;
  /** Number of next script calls to reject with OOM. */
  rejections = 0;
  readonly #client: Redis;
  readonly #breakage: Breakage;
  readonly #scripts = new Map<string, LuaScript>();
  readonly #onExecuted: (done: Executed) => Promise<void>;

  constructor(
    world: World,
    client: Redis,
    {
      breakage,
      onExecuted,
    }: { readonly breakage: Breakage; readonly onExecuted: (done: Executed) => Promise<void> },
  ) {
    this.process = new Process(world, "redis", { isReal: true });
    this.world = world;
    this.#client = client;
    this.#breakage = breakage;
    this.#onExecuted = onExecuted;
  }

  timeMs = (): number => Math.floor(BEGINNING_MS + this.world.nowMs + this.skewMs);

  async execute(by: string, command: string, args: readonly string[]): Promise<unknown> {
    const ms = this.timeMs();
    if (command === "time") return [String(Math.floor(ms / 1000)), String((ms % 1000) * 1000)];
    if (command !== "evalsha" && command !== "eval") {
      const reply = await this.#client.call(command, ...args);
      await this.#onExecuted({ by, name: command, keys: [], args, reply });
      return reply;
    }
    const [script = "", count = "0", ...rest] = args;
    if (this.rejections > 0) {
      this.rejections--;
      throw new ReplyError("OOM command not allowed when used memory > 'maxmemory'.");
    }
    const sha = command === "eval" ? this.#load(script) : script;
    const known = this.#scripts.get(sha);
    if (known === undefined) throw new ReplyError("NOSCRIPT No matching script. Please use EVAL.");
    const reply = await this.#run(known, ms, [count, ...rest]);
    const keys = rest.slice(0, Number(count));
    await this.#onExecuted({ by, name: NAMES.get(sha) ?? sha, keys, args: rest.slice(keys.length), reply });
    return reply;
  }

  #load(text: string): string {
    const sha = createHash("sha1").update(text).digest("hex");
    const changed = useVirtualClock(this.#breakage(text));
    this.#scripts.set(sha, { text: changed, sha: createHash("sha1").update(changed).digest("hex") });
    return sha;
  }

  #run(script: LuaScript, ms: number, rest: readonly string[]): Promise<unknown> {
    const client = this.#client;
    const sent = [...rest, String(ms)];
    return client.call("evalsha", script.sha, ...sent).catch((error: unknown) => {
      if (!String(error).startsWith("ReplyError: NOSCRIPT")) throw error;
      return client.call("eval", script.text, ...sent);
    });
  }
}
