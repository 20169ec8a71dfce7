import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** An unpacked earlier version of the program. */
export interface PastProgram {
  readonly commit: string;
  readonly name: string;
  readonly main: string;
}

const ROOT = join(import.meta.dirname, "../..");
const MIGRATIONS = "src/data/migrations";
const run = promisify(execFile);

const git = async (...args: string[]): Promise<string> =>
  (await run("git", ["-C", ROOT, ...args], { maxBuffer: 64 * 1024 * 1024 })).stdout.trim();

const files = readdirSync(join(ROOT, MIGRATIONS)).sort();
const [BASELINE = ""] = files;
/** One of the migrations that the baseline replaced. Versions without it know only plain-text addresses, which the baseline ends. */
const SEALED_ADDRESSES = "0032_channel_addresses.sql";
const parseMigrationNumber = (file: string): number => Number(file.slice(0, 4));

/**
 * Oldest migration whose versions can run next to this one. Each migration file names such a migration in "served from"; the newest
 * counts. A file without this comment excludes all earlier versions, except that versions with the migrations that the baseline replaced
 * can run next to the baseline.
 */
const SERVED_FROM = Math.max(
  ...files.map((file) => {
    const [, from] =
      /^-- served from (\d{4})$/m.exec(readFileSync(join(ROOT, MIGRATIONS, file), "utf8")) ?? [];
    return from === undefined ? parseMigrationNumber(file) : Number(from);
  }),
);
const IS_BASELINE_OLDEST = SERVED_FROM === parseMigrationNumber(BASELINE);

/** Returns the last commit before a migration was added. @throws if the git history does not contain it */
async function commitBefore(file = ""): Promise<string> {
  const path = `${MIGRATIONS}/${file}`;
  const addingCommits = await git("log", "--no-renames", "--diff-filter=A", "--format=%H", "--", path);
  const first = addingCommits.split("\n").at(-1);
  const parent = first && (await git("rev-parse", "--verify", `${first}^`).catch(() => undefined));
  if (!parent) throw new Error(`There is no commit before ${path}. This rig needs the whole git history.`);
  return parent;
}

const fileOf = (migration: number) => files.find((file) => parseMigrationNumber(file) === migration);

/** Returns the newest tagged version, or the version before the newest migration if there are no tags. */
export async function releaseBefore(dir: string): Promise<PastProgram> {
  const tags = (await git("tag", "--merged", "HEAD", "--sort=-creatordate", "v*")).split("\n");
  const [tag = ""] = tags;
  if (tag !== "") return unpack(dir, tag, tag);
  return unpack(dir, await commitBefore(files.at(-1)), `the version before ${files.at(-1)}`);
}

/** Returns the oldest version that can run next to this one. */
export async function oldestServed(dir: string): Promise<PastProgram> {
  const next = IS_BASELINE_OLDEST ? BASELINE : fileOf(SERVED_FROM + 1);
  if (next === undefined) throw new Error("No earlier version can run next to this one.");
  return unpack(dir, await commitBefore(next), `the oldest supported version, before ${next}`);
}

/** Returns the newest version that must reject the database of this one. */
export async function newestUnserved(dir: string): Promise<PastProgram> {
  const unknown = IS_BASELINE_OLDEST ? SEALED_ADDRESSES : fileOf(SERVED_FROM);
  return unpack(dir, await commitBefore(unknown), `the version before ${unknown}`);
}

/** Unpacks a version. It uses the current packages, because its own would need a registry. */
async function unpack(into: string, commit: string, name: string): Promise<PastProgram> {
  const dir = await mkdtemp(join(into, "program-"));
  const archive = join(dir, "program.tar");
  await git("archive", `--output=${archive}`, commit, "src", "package.json");
  await run("tar", ["-xf", archive, "-C", dir]);
  await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
  const at = await git("rev-parse", "--short", `${commit}^{commit}`);
  return {
    commit: at,
    name: `${name} (${at})`,
    main: join(dir, "src/main.ts"),
  };
}
