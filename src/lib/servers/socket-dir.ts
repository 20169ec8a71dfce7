import { createHash } from "node:crypto";
import { chownSync, lstatSync, mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";

/** `sun_path` has 108 bytes including the final zero on Linux, and 104 on macOS (unix(7), unix(4)). */
const MAX_SOCKET_PATH_BYTES = process.platform === "linux" ? 107 : 103;

/** User of a server that runs under another user, who cannot access the data directory. */
type Owner = { readonly uid: number; readonly gid: number };

/**
 * Creates a private folder (0700) for a server's socket: `<dataDir>/run`, or `/tmp/inlet-<uid>-<hash of the data directory>` if the path is
 * too long or the server runs as another user. The path is the same at every start, so that a server that is still running is found. It
 * does not use `TMPDIR` or `XDG_RUNTIME_DIR`, which differ between a service and a login.
 *
 * @param dataDir real, absolute path
 * @param socketName name of the socket file, which counts toward the length limit of the path
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

/** Removes the folder after its server has stopped, unless it contains the socket of another server. */
export function removeSocketDir(dir: string): void {
  try {
    rmdirSync(dir);
  } catch {
    // The other server uses the folder, or it is already removed.
  }
}

function privateDir(dir: string, uid: number, owner?: Owner): string {
  const made = mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (made !== undefined && owner) chownSync(dir, owner.uid, owner.gid);
  const stat = lstatSync(dir);
  if (!stat.isDirectory() || stat.uid !== uid || (stat.mode & 0o077) !== 0) {
    throw new Error(
      `${dir} must be a folder of user ${uid} with mode 0700; remove it, or set INLET_DATA_DIR to a short path`,
    );
  }
  return dir;
}
