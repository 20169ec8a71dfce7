import { createHash } from "node:crypto";
import { chownSync, lstatSync, mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";

/**
 * Maximum length of a socket path in bytes. `sun_path` holds 108 bytes on Linux and 104 on macOS, including the final zero
 * (unix(7), unix(4)).
 */
const MAX_SOCKET_PATH_BYTES = process.platform === "linux" ? 107 : 103;

/** User that runs the server, if different from the user of this process. The server's user cannot access the data directory. */
type Owner = { readonly uid: number; readonly gid: number };

/**
 * Creates a private folder (mode 0700) for the socket of a server, and returns its path.
 *
 * The path is `<dataDir>/run`. If that is too long, or if another user runs the server, it is `/tmp/inlet-<uid>-<hash of the data
 * directory>`. The path is the same at every start, so that a server that is still running is found. `TMPDIR` and
 * `XDG_RUNTIME_DIR` are not used, because they may differ between a service and a login.
 *
 * @param dataDir absolute path without symbolic links
 * @param socketName name of the socket file, which counts toward the maximum length
 * @throws Error if another user has created the folder
 */
export function makeSocketDir(dataDir: string, socketName: string, owner?: Owner): string {
  const ownUid = process.getuid?.() ?? 0;
  const inside = join(dataDir, "run");
  const fits = Buffer.byteLength(join(inside, socketName)) <= MAX_SOCKET_PATH_BYTES;
  if (fits && owner === undefined) return privateDir(inside, ownUid);
  const uid = owner?.uid ?? ownUid;
  const hash = createHash("sha256").update(dataDir).digest("hex").slice(0, 16);
  return privateDir(join("/tmp", `inlet-${uid}-${hash}`), uid, owner);
}

/** Removes the socket folder of a stopped server, unless the folder contains the socket of another server. */
export function removeSocketDir(dir: string): void {
  try {
    rmdirSync(dir);
  } catch {
    // Ignore the error. The folder still contains another server's socket, or no longer exists.
  }
}

function privateDir(dir: string, uid: number, owner?: Owner): string {
  const made = mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (made !== undefined && owner) chownSync(dir, owner.uid, owner.gid);
  const stat = lstatSync(dir);
  if (!stat.isDirectory() || stat.uid !== uid || (stat.mode & 0o077) !== 0) {
    throw new Error(
      `${dir} must be a folder with mode 0700 that user ${uid} owns; remove it, or set INLET_DATA_DIR to a short path`,
    );
  }
  return dir;
}
