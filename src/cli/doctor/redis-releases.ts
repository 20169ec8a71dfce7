/** A Redis or Valkey server by its own version, such as Valkey 8.1.9. */
export interface ServerRelease {
  readonly name: "Redis" | "Valkey";
  readonly version: string;
}

/**
 * First releases with all security fixes that were published when this version of Inlet was released, by release line. The last ones fix
 * CVE-2026-23479, CVE-2026-23631, CVE-2026-25243 and CVE-2026-66373 (Redis, 23 July 2026), and CVE-2026-56684 and CVE-2026-63639 (Valkey,
 * 21 July 2026). Each of them lets an authenticated client run code in the server.
 */
export const PATCHED_RELEASES: Readonly<Record<ServerRelease["name"], readonly string[]>> = {
  Redis: ["7.2.15", "7.4.10", "8.2.8", "8.4.5", "8.6.5", "8.8.1", "8.10.0"],
  Valkey: ["7.2.14", "8.0.10", "8.1.9", "9.0.5", "9.1.1"],
};

/** Reads the release from the fields of INFO. Valkey also reports the version of Redis with which it is compatible. */
export function readRelease(info: ReadonlyMap<string, string>): ServerRelease {
  const valkey = info.get("valkey_version");
  if (valkey !== undefined) return { name: "Valkey", version: valkey };
  return { name: "Redis", version: info.get("redis_version") ?? "0" };
}

/** Returns the release to install, or `undefined` if the server has all known security fixes. */
export function findPatchedRelease({ name, version }: ServerRelease): string | undefined {
  const patched = PATCHED_RELEASES[name];
  const newest = patched.at(-1) ?? version;
  const line = lineOf(version);
  const ofLine = patched.find((release) => lineOf(release) === line);
  if (ofLine !== undefined) return compare(version, ofLine) < 0 ? ofLine : undefined;
  return compare(version, newest) > 0 ? undefined : patched.find((release) => compare(release, version) > 0);
}

const lineOf = (version: string): string => version.split(".").slice(0, 2).join(".");

const compare = (a: string, b: string): number => a.localeCompare(b, "en", { numeric: true });
