import { execFile } from "node:child_process";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { parseJson } from "../../event/parse-json.ts";
import { binariesIn, type PostgresBinaries } from "./binaries.ts";

const run = promisify(execFile);

/**
 * System user that runs PostgreSQL, which refuses to run as root.
 *
 * - `self`: the user of this process.
 * - `namespace`: an unprivileged user inside a user namespace. Outside, it maps to the user of this process (usually root). It can
 *   access files of root, even below a parent directory with mode 0700.
 * - `other`: another system account. The server enters its directory before it switches users, and refers to it as
 *   `/proc/self/cwd`. It therefore needs no access to the parent directories.
 */
export type ServerUser =
  | { readonly kind: "self" }
  | { readonly kind: "namespace"; readonly uid: number; readonly gid: number }
  | { readonly kind: "other"; readonly uid: number; readonly gid: number };

export interface ServerUserOptions {
  readonly binaries: PostgresBinaries;
  readonly dataDir: string;
  readonly clusterDir: string;
  /** Directory for a copy of the binaries. The copy is needed if the chosen user cannot read the installed package. */
  readonly sharedBinariesDir?: string;
}

const SHARED_BINARIES_DIR = "/var/lib/inlet";

/**
 * Chooses a system user for PostgreSQL, which refuses to run as root, and binaries that this user can execute.
 *
 * @throws Error with instructions if there is no such user
 */
export async function chooseServerUser(
  options: ServerUserOptions,
): Promise<{ readonly user: ServerUser; readonly binaries: PostgresBinaries }> {
  const { binaries, dataDir, clusterDir } = options;
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && hasName()) return { user: { kind: "self" }, binaries };

  const owner = statSync(clusterDir, { throwIfNoEntry: false });
  const account = findAccount();
  if (!(isRoot && owner && owner.uid !== 0) && account) {
    const user = { kind: "namespace", ...account } as const;
    if ((await tryToRun(user, binaries, dataDir)) === undefined) return { user, binaries };
  }
  const ids = owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : account;
  if (isRoot && ids && process.platform === "linux") {
    const user = { kind: "other", ...ids } as const;
    if (owner && owner.uid !== ids.uid) chownTree(clusterDir, ids);
    const problem = await tryToRun(user, binaries, dataDir);
    if (problem === undefined) return { user, binaries };
    if (problem === "EACCES") {
      const shared = copyBinaries(binaries, options.sharedBinariesDir ?? SHARED_BINARIES_DIR);
      if ((await tryToRun(user, shared, dataDir)) === undefined) return { user, binaries: shared };
    }
  }
  throw new Error(
    "PostgreSQL cannot run as this user: it refuses root, and needs an account in /etc/passwd. " +
      "Start Inlet as an ordinary user, or set DATABASE_URL to the address of your PostgreSQL server.",
  );
}

/** Returns the command that runs a program as the given user. Run the command in the directory that the program works on. */
export function callAs(user: ServerUser, file: string, args: readonly string[]) {
  switch (user.kind) {
    case "self":
      return { file, args };
    case "namespace": {
      const map = ["--user", `--map-user=${user.uid}`, `--map-group=${user.gid}`];
      return { file: "unshare", args: [...map, "--", file, ...args] };
    }
    case "other":
      return { file, args, uid: user.uid, gid: user.gid };
    default:
      return user satisfies never;
  }
}

export const ownDirectory = (user: ServerUser, dir: string): string =>
  user.kind === "self" ? dir : "/proc/self/cwd";

/** Tries to run a program as the user. Returns `undefined` on success, otherwise the system's error code or `failed`. */
async function tryToRun(
  user: ServerUser,
  binaries: PostgresBinaries,
  dataDir: string,
): Promise<string | undefined> {
  const { file, args, ...ids } = callAs(user, binaries.initdb, ["--version"]);
  return run(file, args, { ...ids, cwd: dataDir, timeout: 10_000 }).then(
    () => undefined,
    (error: { code?: unknown }) => (typeof error.code === "string" ? error.code : "failed"),
  );
}

function hasName(): boolean {
  try {
    return userInfo().username !== "";
  } catch {
    return false;
  }
}

/**
 * Finds the account `postgres`, or else `nobody`, which every system has. The user must be in /etc/passwd, because initdb requires
 * that.
 */
function findAccount(): { readonly uid: number; readonly gid: number } | undefined {
  if (!existsSync("/etc/passwd")) return undefined;
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const name of ["postgres", "nobody"]) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(":") ?? [];
    if (uid !== undefined && gid !== undefined && Number(uid) > 0)
      return { uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
}

/**
 * Copies the binaries to a directory that root owns. The copy has a temporary name until it is complete, so that no partial copy is
 * ever executed.
 */
function copyBinaries(binaries: PostgresBinaries, sharedDir: string): PostgresBinaries {
  const manifest: unknown = parseJson(readFileSync(join(dirname(binaries.root), "package.json"), "utf8"));
  const target = join(sharedDir, `postgresql-${(manifest as { version: string }).version}`);
  if (!existsSync(target)) {
    mkdirSync(sharedDir, { recursive: true, mode: 0o755 });
    for (const name of readdirSync(sharedDir)) {
      if (name.startsWith(`${basename(target)}.partial-`)) rmSync(join(sharedDir, name), { recursive: true });
    }
    const partial = `${target}.partial-${process.pid}`;
    cpSync(binaries.root, partial, { recursive: true, verbatimSymlinks: true });
    renameSync(partial, target);
  }
  return binariesIn(target);
}

function chownTree(path: string, ids: { readonly uid: number; readonly gid: number }): void {
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) chownSync(join(entry.parentPath, entry.name), ids.uid, ids.gid);
  }
  chownSync(path, ids.uid, ids.gid);
}
