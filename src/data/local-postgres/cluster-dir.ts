import { execFile } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { syncDirectory } from "../../lib/sync-directory.ts";
import { POSTGRES_MAJOR, type PostgresBinaries } from "./binaries.ts";
import { callAs, ownDirectory, type ServerUser } from "./server-user.ts";

const run = promisify(execFile);

export const SUPERUSER = "inlet";

/**
 * Arguments of `initdb`. Built-in locales are used, because an update of the C library could change a system locale and corrupt
 * indexes.
 */
const INITDB_ARGS = [
  `--username=${SUPERUSER}`,
  "--auth=trust",
  "--encoding=UTF8",
  "--no-locale",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8",
];

/**
 * Checks that this release can open the data directory: it is missing, or has the same PostgreSQL major version.
 *
 * @throws Error with instructions otherwise
 */
export function checkClusterMajor(clusterDir: string): void {
  if (!existsSync(clusterDir)) return;
  const versionFile = join(clusterDir, "PG_VERSION");
  const major = existsSync(versionFile) ? readFileSync(versionFile, "utf8").trim() : undefined;
  if (major === POSTGRES_MAJOR) return;
  if (major === undefined) {
    throw new Error(
      `${clusterDir} is not a PostgreSQL data directory (no PG_VERSION). Move it away and start Inlet again.`,
    );
  }
  throw new Error(
    `${clusterDir} was created by PostgreSQL ${major}. This release of Inlet contains PostgreSQL ${POSTGRES_MAJOR} and cannot open it. ` +
      "Start the previous release of Inlet, run `inlet backup`, and restore the file with this release into an empty data directory " +
      "(`inlet restore`). Or set DATABASE_URL to a server that has the data.",
  );
}

/**
 * Creates the data directory of a new PostgreSQL server. Until it is complete, it has a temporary name, so that `clusterDir` is
 * never incomplete.
 *
 * Also removes the remains of earlier attempts.
 */
export async function initCluster(options: {
  readonly clusterDir: string;
  readonly binaries: PostgresBinaries;
  readonly user: ServerUser;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { clusterDir, binaries, user, env, signal } = options;
  const parent = dirname(clusterDir);
  const prefix = `${basename(clusterDir)}.new-`;
  for (const name of readdirSync(parent)) {
    if (name.startsWith(prefix)) rmSync(join(parent, name), { recursive: true, force: true, maxRetries: 5 });
  }
  const partial = join(parent, `${prefix}${process.pid}`);
  mkdirSync(partial, { mode: 0o700 });
  if (user.kind === "other") chownSync(partial, user.uid, user.gid);
  const args = [...INITDB_ARGS, `--pgdata=${ownDirectory(user, partial)}`];
  const { file, args: callArgs, ...ids } = callAs(user, binaries.initdb, args);
  try {
    await run(file, callArgs, { ...ids, cwd: partial, env, signal });
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    const { stderr } = error as { stderr?: string };
    throw new Error(`initdb failed: ${stderr?.trim() || String(error)}`, { cause: error });
  }
  renameSync(partial, clusterDir);
  await syncDirectory(parent);
}
