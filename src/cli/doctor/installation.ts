import { accessSync, constants, existsSync, readFileSync, type Stats, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { loadConfig } from "../../config/load.ts";
import type { Config } from "../../config/schema.ts";
import { parseMasterKey } from "../../lib/secrets/master-key.ts";
import type { Io } from "../io.ts";
import { type Found, ok, warning, wrong } from "./check-result.ts";

const LOW_DISK_RATIO = 0.1;
const LOW_DISK_BYTES = 1024 ** 3;

export async function checkInstallation(
  env: Io["env"],
  configFile: string | undefined,
): Promise<readonly Found[]> {
  const found = [checkNode()];
  const loaded = loadConfig(env, configFile);
  if (!loaded.ok) {
    const suggestedAction =
      "Fix the setting in the environment or the settings file. `inlet start --help` lists all settings.";
    return [
      ...found,
      ...loaded.error.map(({ path, message }) => wrong("settings", `${path} ${message}`, suggestedAction)),
    ];
  }
  const config = loaded.value;
  return [
    ...found,
    ok("settings", "All settings are valid."),
    ...(await checkPostgres(config)),
    ...(await checkRedis(config)),
    ...(await checkDataDir(config)),
  ];
}

function checkNode(): Found {
  const { version } = process;
  const wanted = packageJson.engines.node.replace(">=", "");
  const isEnough = version.slice(1).localeCompare(wanted, undefined, { numeric: true }) >= 0;
  return isEnough
    ? ok("Node.js", version)
    : wrong(
        "Node.js",
        `${version}; ${wanted} or later is required`,
        "Run `sh config/setup.sh`, then start with npm or npx.",
      );
}

async function checkPostgres(config: Config): Promise<readonly Found[]> {
  const { databaseUrl, dataDir } = config;
  if (databaseUrl === undefined) return [await checkEmbeddedPostgres(dataDir)];
  const { checkExternalPostgres } = await import("./postgres.ts");
  return checkExternalPostgres({ ...config, databaseUrl });
}

async function checkEmbeddedPostgres(dataDir: string): Promise<Found> {
  const check = "PostgreSQL";
  try {
    const { findPostgresBinaries, POSTGRES_MAJOR } = await import("../../data/local-postgres/binaries.ts");
    const { checkClusterMajor } = await import("../../data/local-postgres/cluster-dir.ts");
    findPostgresBinaries();
    checkClusterMajor(join(resolve(dataDir), "postgres"));
    return ok(check, `embedded, version ${POSTGRES_MAJOR}`);
  } catch (error) {
    return wrong(
      check,
      messageOf(error),
      "Fix the reported problem, or set DATABASE_URL to use an external PostgreSQL.",
    );
  }
}

async function checkRedis(config: Config): Promise<readonly Found[]> {
  if (config.redisUrls.length === 0) return [await checkEmbeddedRedis()];
  const { checkExternalRedis } = await import("./redis.ts");
  return checkExternalRedis(config);
}

async function checkEmbeddedRedis(): Promise<Found> {
  try {
    const { findRedisProgram } = await import("../../bus/connection/local-redis.ts");
    return ok("Redis", `embedded, run by ${await findRedisProgram()}`);
  } catch (error) {
    return wrong(
      "Redis",
      messageOf(error),
      "Fix the reported problem, or set REDIS_URL to use an external Redis.",
    );
  }
}

async function checkDataDir({
  dataDir,
  databaseUrl,
  redisUrls,
  masterKey,
}: Config): Promise<readonly Found[]> {
  if (databaseUrl !== undefined && redisUrls.length > 0 && masterKey !== undefined) return [];
  const check = "data directory";
  const path = resolve(dataDir);
  if (!existsSync(path)) {
    return [
      ok(check, `${path} does not exist yet. The first start creates this directory.`),
      await checkDisk(nearestOf(path)),
    ];
  }
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return [
      wrong(
        check,
        `You cannot read and write ${path}`,
        "Run Inlet as the directory's owner, or change the owner with chown.",
      ),
    ];
  }
  return [
    ...checkMode(check, path),
    ...(masterKey === undefined ? checkMasterKey(path) : []),
    await checkDisk(path),
  ];
}

function checkMode(check: string, path: string): readonly Found[] {
  if (isPrivate(statSync(path))) return [ok(check, path)];
  return [warning(check, `${path} can be read by others on this machine`, `chmod 700 '${path}'`)];
}

function checkMasterKey(path: string): readonly Found[] {
  const check = "master key";
  const file = join(path, "master.key");
  if (!existsSync(file)) {
    if (!existsSync(join(path, "postgres"))) return [];
    const suggestedAction =
      "Restore the master key of this database from your copy. Without it, stored secrets cannot be read.";
    return [wrong(check, `${file} is missing, but a database exists`, suggestedAction)];
  }
  if (parseMasterKey(readFileSync(file, "utf8").trim()) === undefined) {
    return [
      wrong(
        check,
        `${file} does not contain a master key`,
        "Restore the master key of this database from your copy.",
      ),
    ];
  }
  if (isPrivate(statSync(file))) return [ok(check, `${file} (store a copy elsewhere)`)];
  return [wrong(check, `${file} can be read by others on this machine`, `chmod 600 '${file}'`)];
}

async function checkDisk(path: string): Promise<Found> {
  const { bavail, blocks, bsize } = await statfs(path);
  const freeBytes = bavail * bsize;
  const text = `${(freeBytes / 1024 ** 3).toFixed(1)} GiB free on the disk of ${path}`;
  const isLow = bavail < LOW_DISK_RATIO * blocks || freeBytes < LOW_DISK_BYTES;
  const suggestedAction = "Free disk space. On a full disk Redis rejects writes and hooks respond with 503.";
  return isLow ? warning("disk", text, suggestedAction) : ok("disk", text);
}

/** Returns the path, or its nearest parent folder that exists. */
const nearestOf = (path: string): string => (existsSync(path) ? path : nearestOf(dirname(path)));
const isPrivate = ({ mode }: Stats): boolean => (mode & 0o077) === 0;
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
