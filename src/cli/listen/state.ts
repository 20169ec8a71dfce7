import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { acquireFileLock } from "../../lib/servers/file-lock.ts";
import { configDir } from "../client/credentials.ts";
import { CommandError } from "../exit.ts";
import type { Io } from "../io.ts";

/** Identifies a local listener. Each combination of app, target and filter has its own stored position. */
export interface ListenerName {
  readonly baseUrl: string;
  readonly appId: string;
  readonly target: string;
  readonly filters: readonly string[];
}

export interface ListenState extends Disposable {
  /** Stored stream position. `undefined` on the first run. */
  readonly position: string | undefined;
  /** Stores the position synchronously, so that it survives if the process is killed. */
  readonly save: (position: string) => void;
}

const CONTENTION_MS = 1_000;

/**
 * Opens and locks the file with a listener's stored position. If two processes shared the file, each would skip events that the
 * other has read.
 *
 * @throws CommandError if another process uses the file
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
      `Another \`inlet listen\` already sends the same events to ${target}. Stop it first, or choose another address, channel or type.`,
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

/** Returns the secret that signs the requests of this user's local listeners. Creates it on the first call. */
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
    // Start with new events if there is no readable stored position.
    return undefined;
  }
}
