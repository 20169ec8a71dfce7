import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** A program of before, unpacked. */
export interface PastProgram {
  readonly commit: string;
  /** What it is called in the verdict. */
  readonly name: string;
  readonly main: string;
  /** The newest migration that it knows. */
  readonly migration: number;
}

const ROOT = join(import.meta.dirname, "../..");
const MIGRATIONS = "src/data/migrations";
const run = promisify(execFile);

const git = async (...args: string[]): Promise<string> =>
  (await run("git", ["-C", ROOT, ...args], { maxBuffer: 64 * 1024 * 1024 })).stdout.trim();

const files = readdirSync(join(ROOT, MIGRATIONS)).sort();
const numberOf = (file: string): number => Number(file.slice(0, 4));

/** The oldest migration whose programs go on beside this one: the newest of all that the files name; one that names none ends all before. */
export const SERVED_FROM = Math.max(
  ...files.map((file) => {
    const [, from] =
      /^-- served from (\d{4})$/m.exec(readFileSync(join(ROOT, MIGRATIONS, file), "utf8")) ?? [];
    return from === undefined ? numberOf(file) : Number(from);
  }),
);

/** Why no program of before can be had; undefined: they can. */
export async function whyNoHistory(): Promise<string | undefined> {
  try {
    const [isShallow, first] = await Promise.all([
      git("rev-parse", "--is-shallow-repository"),
      commitBefore(SERVED_FROM + 1),
    ]);
    return isShallow === "true" || first === undefined ? "the history is cut off" : undefined;
  } catch {
    return "there is no git history here";
  }
}

/** The last commit that did not know the migration of that number yet; undefined where no commit has brought it. */
async function commitBefore(number: number): Promise<string | undefined> {
  const path = `${MIGRATIONS}/${files[number - 1]}`;
  const brought = await git("log", "--no-renames", "--diff-filter=A", "--format=%H", "--", path);
  const first = brought.split("\n").at(-1);
  return first ? git("rev-parse", `${first}^`) : undefined;
}

/** The newest version that is tagged, where there is one; else the program before the newest migration. */
export async function releaseBefore(dir: string): Promise<PastProgram> {
  const tags = (await git("tag", "--merged", "HEAD", "--sort=-creatordate", "v*")).split("\n");
  const [tag = ""] = tags;
  if (tag !== "") return unpack(dir, tag, tag);
  const newest = files.at(-1) ?? "";
  return unpack(dir, (await commitBefore(numberOf(newest))) ?? "", `the one before ${newest}`);
}

/** The oldest program that goes on beside this one: before a version was tagged, a migration was now and then written anew, or moved. */
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
      return unpack(dir, commit, `the oldest that is served, of migration ${migration}`);
  }
  throw new Error("no program of before is served");
}

/** The newest program that did not know the migration of that number yet. */
export const programBefore = async (dir: string, migration: number): Promise<PastProgram> =>
  unpack(dir, (await commitBefore(migration)) ?? "", `one before migration ${migration}`);

/** It runs on the packages of today: those of then are not to be had without a registry. */
async function unpack(into: string, commit: string, name: string): Promise<PastProgram> {
  const dir = await mkdtemp(join(into, "program-"));
  const archive = join(dir, "program.tar");
  await git("archive", `--output=${archive}`, commit, "src", "package.json");
  await run("tar", ["-xf", archive, "-C", dir]);
  await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
  const known = readdirSync(join(dir, MIGRATIONS)).map(numberOf);
  const at = await git("rev-parse", "--short", `${commit}^{commit}`);
  return {
    commit: at,
    name: `${name} (${at})`,
    main: join(dir, "src/main.ts"),
    migration: Math.max(...known),
  };
}
