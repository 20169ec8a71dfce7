import { createHash } from "node:crypto";
import { appendFileSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/**
 * Builds the console into `src/console/dist`, from which the gateway serves it. Skips the build if no source has changed. The
 * files are compressed here so that the gateway does not have to do it.
 */
const ROOT = join(import.meta.dirname, "..", "..");
const DIST = join(ROOT, "src", "console", "dist");
const STAMP = join(DIST, ".stamp");
/** Minimum size in bytes of a file to compress. Smaller files gain too little. */
const COMPRESSED_FROM_BYTES = 1_024;

const sources = globSync(
  [
    "src/console/**",
    "src/channels/compose-channel.ts",
    "src/verify/presets/*.json",
    "config/console/**",
    "package-lock.json",
  ],
  {
    cwd: ROOT,
    exclude: ["src/console/{dist,generated}/**"],
    withFileTypes: true,
  },
).filter((entry) => entry.isFile());

function hashOfSources(): string {
  const hash = createHash("sha256");
  for (const file of sources.map(({ parentPath, name }) => join(parentPath, name)).sort()) {
    hash
      .update(`${file.slice(ROOT.length)}\0`)
      .update(readFileSync(file))
      .update("\0");
  }
  return hash.digest("hex");
}

function isBuilt(stamp: string): boolean {
  try {
    return readFileSync(STAMP, "utf8") === stamp;
  } catch {
    return false;
  }
}

function compress(file: string): void {
  const bytes = readFileSync(file);
  if (bytes.length < COMPRESSED_FROM_BYTES) return;
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  writeFileSync(
    `${file}.br`,
    brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
  );
}

/** Vite collects the licenses of scripts only. The typeface and the logos have to be distributed with their licenses too. */
function addLicense(packageName: string, file: string): void {
  const folder = join(ROOT, "node_modules", packageName);
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const text = readFileSync(join(folder, file), "utf8");
  appendFileSync(join(DIST, "licences.md"), `\n## ${name} - ${version} (${license})\n\n${text}`);
}

const stamp = hashOfSources();
if (!isBuilt(stamp)) {
  // A build started by a test would otherwise be a development build, which contains local paths.
  process.env.NODE_ENV = "production";
  const { build } = await import("vite");
  await build({ configFile: join(import.meta.dirname, "vite.config.ts"), logLevel: "warn" });
  for (const name of globSync("**/*.{js,css,html,svg}", { cwd: DIST })) compress(join(DIST, name));
  addLicense("@fontsource-variable/geist", "LICENSE");
  addLicense("simple-icons", "LICENSE.md");
  writeFileSync(STAMP, stamp);
}
