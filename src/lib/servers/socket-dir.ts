import { createHash } from "node:crypto";
import { chownSync, lstatSync, mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";

/** `sun_path` holds 108 bytes with its final zero on Linux, 104 on macOS (unix(7), unix(4)). */
const MAX_SOCKET_PATH_BYTES = process.platform === "linux" ? 107 : 103;

/** Of a server that runs as somebody else, who may not reach the data directory. */
type Owner = { readonly uid: number; readonly gid: number };

/**
 * A private folder (0700) for one server's socket: `<dataDir>/run`, or `/tmp/inlet-<uid>-<hash of the data directory>`
 * where that path is too long or belongs to another user. The same at every start, so that a server left running is
 * found again; hence not `TMPDIR` or `XDG_RUNTIME_DIR`, which differ between a service and a login. Throws when somebody
 * else made the folder first.
 *
 * @param dataDir real, absolute path
 * @param socketName decides whether `<dataDir>/run` is short enough
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

/** After its server has stopped; another server's socket in it keeps the folder. */
export function removeSocketDir(dir: string): void {
  try {
    rmdirSync(dir);
  } catch {
    // In use by the other server, or gone already.
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
