/**
 * Packs the gateway and its command line into `inlet-gateway-<version>.tgz`, which `npx inlet-gateway` runs. The console must be built.
 *
 * usage: npm run pack:gateway [-- <folder>]
 *
 * The default folder is `dist`. Prints the path of the tarball.
 */
import { cp, glob, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { compile, packFolder, ROOT } from "./pack-folder.ts";

/** A URL of a module that a thread or process starts with. The compiler only renames imports. */
const MODULE_URL = /(new URL\("\.[^"]*)\.ts(", import\.meta\.url\))/g;
/** Files that are read at run time. */
const ASSETS = "src/**/*.{css,js,json,lua,md,png,sql,svg}";

const work = await mkdtemp(join(tmpdir(), "inlet-gateway-"));
try {
  await compile("tsconfig.gateway.json", work);
  await renameModuleUrls();
  await copyAssets();
  const { name, bin, scripts, devDependencies, allowScripts, private: _, overrides, ...shared } = manifest;
  const packed = {
    name: "inlet-gateway",
    ...shared,
    bin: { "inlet-gateway": "inlet.js", inlet: "inlet.js" },
  };
  await writeFile(join(work, "package.json"), `${JSON.stringify(packed, undefined, 2)}\n`);
  for (const file of ["inlet.js", "README.md"]) await cp(join(import.meta.dirname, file), join(work, file));
  const tarball = await packFolder(work, resolve(process.argv[2] ?? join(ROOT, "dist")));
  process.stdout.write(`${tarball}\n`);
} finally {
  await rm(work, { recursive: true, force: true });
}

async function renameModuleUrls(): Promise<void> {
  for await (const file of glob("src/**/*.js", { cwd: work })) {
    const text = await readFile(join(work, file), "utf8");
    const renamed = text.replaceAll(MODULE_URL, "$1.js$2");
    if (renamed !== text) await writeFile(join(work, file), renamed);
  }
}

async function copyAssets(): Promise<void> {
  const exclude = ["src/console/**", "src/consumer/package.json", "src/inlet.js"];
  for await (const file of glob(ASSETS, { cwd: ROOT, exclude })) await cp(join(ROOT, file), join(work, file));
  await cp(join(ROOT, "src/console/dist"), join(work, "src/console/dist"), { recursive: true });
}
