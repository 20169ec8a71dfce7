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
  /** Newest migration that this version knows. */
  readonly migration: number;
}

const ROOT = join(import.meta.dirname, "../..");
const MIGRATIONS = "src/data/migrations";
const run = promisify(execFile);

const git = async (...args: string[]): Promise<string> =>
  (await run("git", ["-C", ROOT, ...args], { maxBuffer: 64 * 1024 * 1024 })).stdout.trim();

const files = readdirSync(join(ROOT, MIGRATIONS)).sort();
const parseMigrationNumber = (file: string): number => Number(file.slice(0, 4));

/**
 * Oldest migration whose versions can run next to this one. Each migration file names such a migration in "served from"; the newest
 * counts. A file without this comment excludes all earlier versions.
 */
export const SERVED_FROM = Math.max(
  ...files.map((file) => {
    const [, from] =
      /^-- served from (\d{4})$/m.exec(readFileSync(join(ROOT, MIGRATIONS, file), "utf8")) ?? [];
    return from === undefined ? parseMigrationNumber(file) : Number(from);
  }),
);

/** Returns why no earlier version is available, or `undefined` if they are. */
export async function whyNoHistory(): Promise<string | undefined> {
  try {
    const [isShallow, first] = await Promise.all([
      git("rev-parse", "--is-shallow-repository"),
      commitBefore(SERVED_FROM + 1),
    ]);
    return isShallow === "true" || first === undefined ? "the git history is incomplete" : undefined;
  } catch {
    return "there is no git history";
  }
}

/** Returns the last commit before a migration was added, or `undefined` if no commit has added it. */
async function commitBefore(number: number): Promise<string | undefined> {
  const path = `${MIGRATIONS}/${files[number - 1]}`;
  const addingCommits = await git("log", "--no-renames", "--diff-filter=A", "--format=%H", "--", path);
  const first = addingCommits.split("\n").at(-1);
  return first ? git("rev-parse", `${first}^`) : undefined;
}

/** Returns the newest tagged version, or the version before the newest migration if there are no tags. */
export async function releaseBefore(dir: string): Promise<PastProgram> {
  const tags = (await git("tag", "--merged", "HEAD", "--sort=-creatordate", "v*")).split("\n");
  const [tag = ""] = tags;
  if (tag !== "") return unpack(dir, tag, tag);
  const newest = files.at(-1) ?? "";
  return unpack(
    dir,
    (await commitBefore(parseMigrationNumber(newest))) ?? "",
    `the version before ${newest}`,
  );
}

/**
 * Returns the oldest version that can run next to this one. Skips versions whose migrations were rewritten or moved later, which
 * happened before the first tagged version.
 */
export async function oldestServed(dir: string): Promise<PastProgram> {
  for (let migration = SERVED_FROM; migration < files.length; migration++) {
    const commit = (await commitBefore(migration + 1)) ?? "";
    const rewritten = await git(
      "diff",
      "--name-only",
      "--diff-filter=MD",
      "--no-renames",
      commit,
      "--",
      MIGRATIONS,
    );
    const known = (await git("ls-tree", "--name-only", `${commit}:${MIGRATIONS}`)).split("\n");
    if (rewritten === "" && known.sort().join() === files.slice(0, known.length).join())
      return unpack(dir, commit, `the oldest supported version, with migration ${migration}`);
  }
  throw new Error("No earlier version can run next to this one.");
}

/** Returns the newest version without the given migration. */
export const programBefore = async (dir: string, migration: number): Promise<PastProgram> =>
  unpack(dir, (await commitBefore(migration)) ?? "", `the version before migration ${migration}`);

/** Unpacks a version. It uses the current packages, because its own would need a registry. */
async function unpack(into: string, commit: string, name: string): Promise<PastProgram> {
  const dir = await mkdtemp(join(into, "program-"));
  const archive = join(dir, "program.tar");
  await git("archive", `--output=${archive}`, commit, "src", "package.json");
  await run("tar", ["-xf", archive, "-C", dir]);
  await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
  const known = readdirSync(join(dir, MIGRATIONS)).map(parseMigrationNumber);
  const at = await git("rev-parse", "--short", `${commit}^{commit}`);
  return {
    commit: at,
    name: `${name} (${at})`,
    main: join(dir, "src/main.ts"),
    migration: Math.max(...known),
  };
}
