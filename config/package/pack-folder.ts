import { execFile } from "node:child_process";
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

export const ROOT = join(import.meta.dirname, "../..");
export const run = promisify(execFile);

/** Compiles with the TypeScript project `config` of this folder into `target`. */
export async function compile(config: string, target: string): Promise<void> {
  const tsc = join(ROOT, "node_modules/.bin/tsc");
  await run(tsc, ["-p", join(import.meta.dirname, config), "--outDir", target]);
}

/** Adds the license, and packs the folder of a package into `destination`. Returns the path of the tarball. */
export async function packFolder(folder: string, destination: string): Promise<string> {
  await cp(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
  await mkdir(destination, { recursive: true });
  const { stdout } = await run("npm", ["pack", "--silent", "--pack-destination", destination], {
    cwd: folder,
  });
  return join(destination, stdout.trim());
}
