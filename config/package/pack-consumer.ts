/**
 * Packs src/consumer into `inlet-consumer-<version>.tgz`, with ESM, CommonJS, types and Lua scripts.
 *
 * usage: npm run pack:consumer [-- <folder>] [-- --install]
 *
 * The default folder is `dist`. With `--install` the script also installs the tarball into an empty folder, as a user would.
 * It then prints the number of packages and bytes. The registry must be reachable, to install the dependencies.
 */
import { cp, glob, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { rolldown } from "rolldown";
import { compile, packFolder, ROOT, run } from "./pack-folder.ts";

const CONSUMER = join(ROOT, "src/consumer");
const FORMATS = { esm: "module", cjs: "commonjs" } as const;
const MAX_PACKAGES = 12;
const MAX_BYTES = 5_000_000;

const { values, positionals } = parseArgs({
  options: { install: { type: "boolean", default: false } },
  allowPositionals: true,
});
const destination = resolve(positionals[0] ?? join(ROOT, "dist"));
const work = await mkdtemp(join(tmpdir(), "inlet-consumer-"));
try {
  const tarball = await pack(join(work, "package"));
  process.stdout.write(`${tarball}\n`);
  if (values.install) await install(tarball, join(work, "installed"));
} finally {
  await rm(work, { recursive: true, force: true });
}

async function pack(folder: string): Promise<string> {
  for (const [format, type] of Object.entries(FORMATS)) {
    const target = join(folder, format);
    await compileTypes(target);
    await bundle(format as keyof typeof FORMATS, target);
    for await (const script of glob("*.lua", { cwd: CONSUMER })) {
      await cp(join(CONSUMER, script), join(target, "consumer", script));
    }
    // Node and TypeScript determine the module format by `type` in the nearest package.json.
    await writeFile(join(target, "package.json"), `${JSON.stringify({ type })}\n`);
  }
  for (const file of ["package.json", "README.md"]) await cp(join(CONSUMER, file), join(folder, file));
  return packFolder(folder, destination);
}

async function compileTypes(target: string): Promise<void> {
  await compile("tsconfig.consumer.json", target);
  for await (const file of glob("**/*.d.ts", { cwd: target })) {
    const text = await readFile(join(target, file), "utf8");
    await writeFile(join(target, file), text.replaceAll(/(from "\.[^"]*)\.ts"/g, '$1.js"'));
  }
}

async function bundle(format: keyof typeof FORMATS, target: string): Promise<void> {
  await using build = await rolldown({
    input: [join(CONSUMER, "consumer.ts"), join(CONSUMER, "cloudevents.ts")],
    external: /^[^./]/,
    platform: "node",
    transform: { target: "node20" },
  });
  await build.write({ dir: join(target, "consumer"), format, entryFileNames: "[name].js" });
}

/** @throws Error if the installation exceeds the limits for packages or bytes. */
async function install(tarball: string, folder: string): Promise<void> {
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), '{"private":true}\n');
  await run("npm", ["install", "--no-audit", "--no-fund", tarball], { cwd: folder });
  let packages = 0;
  let bytes = 0;
  for await (const file of glob("node_modules/**", { cwd: folder, withFileTypes: true })) {
    if (!file.isFile()) continue;
    bytes += (await stat(join(file.parentPath, file.name))).size;
    if (/node_modules\/(?:@[^/]+\/)?[^/@.][^/]*$/.test(file.parentPath) && file.name === "package.json") {
      packages++;
    }
  }
  process.stdout.write(`${packages} packages, ${bytes} bytes installed\n`);
  if (packages > MAX_PACKAGES || bytes > MAX_BYTES) {
    throw new Error(
      `installed ${packages} packages and ${bytes} bytes; the limits are ${MAX_PACKAGES} packages and ${MAX_BYTES} bytes`,
    );
  }
}
