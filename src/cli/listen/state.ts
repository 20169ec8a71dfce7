import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { acquireFileLock } from "../../lib/servers/file-lock.ts";
import { configDir } from "../client/credentials.ts";
import { CommandError } from "../exit.ts";
import type { Io } from "../io.ts";

/** What one listener has been sent so far. Another app, target or filter is another one. */
export interface ListenerName {
  readonly baseUrl: string;
  readonly appId: string;
  readonly target: string;
  readonly filters: readonly string[];
}

export interface ListenState extends Disposable {
  /** Where the listener stood when it ended; undefined: it has never listened. */
  readonly position: string | undefined;
  /** In place when it returns, also if the process is killed right after. */
  readonly save: (position: string) => void;
}

const CONTENTION_MS = 1_000;

/**
 * The place of a listener, kept in a file of its own, for one process at a time: of two each would move it past events of the other.
 *
 * @throws CommandError where another has it
 */
export function openListenState(env: Io["env"], name: ListenerName): ListenState {
  const folder = join(configDir(env), "listen");
  const { baseUrl, appId, target, filters } = name;
  const digest = createHash("sha256")
    .update(JSON.stringify([baseUrl, appId, target, filters]))
    .digest("hex");
  const file = join(folder, `${digest.slice(0, 24)}.json`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = acquireFileLock(join(folder, `${digest.slice(0, 24)}.lock`), CONTENTION_MS);
  if (lock === undefined) {
    throw new CommandError(
      `Another \`inlet listen\` sends the same events to ${target} already. End it first, or send to another address, or other channels or types.`,
    );
  }
  return {
    [Symbol.dispose]: () => lock[Symbol.dispose](),
    position: readPosition(file),
    save(position) {
      const partial = `${file}.${process.pid}`;
      writeFileSync(partial, `${JSON.stringify({ ...name, position })}\n`, { mode: 0o600 });
      renameSync(partial, file);
    },
  };
}

/** The secret that events are signed with here: made once, the same for all listeners of this person. */
export function findListenSecret(env: Io["env"]): string {
  const folder = configDir(env);
  const file = join(folder, "listen-secret");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    writeFileSync(file, `whsec_${randomBytes(24).toString("base64")}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return readFileSync(file, "utf8").trim();
}

function readPosition(file: string): string | undefined {
  try {
    const { position } = JSON.parse(readFileSync(file, "utf8")) as { readonly position?: unknown };
    return typeof position === "string" ? position : undefined;
  } catch {
    // Not there, or not whole: it begins anew.
    return undefined;
  }
}
