import { accessSync, constants, existsSync, readFileSync, type Stats, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { parseConfig } from "../../config.ts";
import { parseMasterKey } from "../../lib/secrets/master-key.ts";
import type { Config } from "../../settings.ts";
import type { Io } from "../io.ts";
import { type Found, ok, warning, wrong } from "./look.ts";

const LOW_DISK_RATIO = 0.1;
const LOW_DISK_BYTES = 1024 ** 3;

/** What is wrong with the program on this machine, and with what it would start with. */
export async function lookAtInstallation(
  env: Io["env"],
  configFile: string | undefined,
): Promise<readonly Found[]> {
  const found = [lookAtNode()];
  const parsed = parseConfig(env, configFile === undefined ? [] : ["--config", configFile]);
  if (!parsed.ok || parsed.value.kind !== "start") {
    const findings = parsed.ok ? [] : parsed.error;
    const cure = "Mend it in the environment or the settings file; `inlet start --help` lists them.";
    return [...found, ...findings.map(({ path, message }) => wrong("settings", `${path} ${message}`, cure))];
  }
  const { config } = parsed.value;
  return [
    ...found,
    ok("settings", "They are all right."),
    ...(config.databaseUrl === undefined ? [await lookAtPostgres(config)] : []),
    ...(config.redisUrls.length === 0 ? [await lookAtRedis()] : []),
    ...(await lookAtDataDir(config)),
  ];
}

function lookAtNode(): Found {
  const { version } = process;
  const wanted = packageJson.engines.node.replace(">=", "");
  const isEnough = version.slice(1).localeCompare(wanted, undefined, { numeric: true }) >= 0;
  return isEnough
    ? ok("Node.js", version)
    : wrong(
        "Node.js",
        `${version}; ${wanted} or later is needed`,
        "Run `sh config/setup.sh`, and start by npm or npx.",
      );
}

async function lookAtPostgres({ dataDir }: Config): Promise<Found> {
  const check = "PostgreSQL";
  try {
    const { findPostgresBinaries, POSTGRES_MAJOR } = await import("../../data/local-postgres/binaries.ts");
    const { checkClusterMajor } = await import("../../data/local-postgres/cluster-dir.ts");
    findPostgresBinaries();
    checkClusterMajor(join(resolve(dataDir), "postgres"));
    return ok(check, `its own, ${POSTGRES_MAJOR}`);
  } catch (error) {
    return wrong(check, messageOf(error), "Do as it says, or set DATABASE_URL.");
  }
}

async function lookAtRedis(): Promise<Found> {
  try {
    const { findRedisProgram } = await import("../../bus/connection/local-redis.ts");
    return ok("Redis", `its own, by ${await findRedisProgram()}`);
  } catch (error) {
    return wrong("Redis", messageOf(error), "Do as it says, or set REDIS_URL.");
  }
}

async function lookAtDataDir({
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
      ok(check, `${path} is not there yet: the first start makes it.`),
      await lookAtDisk(nearestOf(path)),
    ];
  }
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return [
      wrong(
        check,
        `${path} cannot be read and written by you`,
        "Start as its owner, or give it to you (chown).",
      ),
    ];
  }
  return [
    ...lookAtMode(check, path),
    ...(masterKey === undefined ? lookAtMasterKey(path) : []),
    await lookAtDisk(path),
  ];
}

function lookAtMode(check: string, path: string): readonly Found[] {
  if (isPrivate(statSync(path))) return [ok(check, path)];
  return [warning(check, `${path} can be read by others on this machine`, `chmod 700 '${path}'`)];
}

function lookAtMasterKey(path: string): readonly Found[] {
  const check = "master key";
  const file = join(path, "master.key");
  if (!existsSync(file)) {
    if (!existsSync(join(path, "postgres"))) return [];
    const cure =
      "Put the key of this database back from where it is kept: without it stored secrets cannot be read.";
    return [wrong(check, `${file} is missing beside a database`, cure)];
  }
  if (parseMasterKey(readFileSync(file, "utf8").trim()) === undefined) {
    return [
      wrong(check, `${file} holds no master key`, "Put the key of this database back from where it is kept."),
    ];
  }
  if (isPrivate(statSync(file))) return [ok(check, `${file}; keep a copy of it elsewhere`)];
  return [wrong(check, `${file} can be read by others on this machine`, `chmod 600 '${file}'`)];
}

async function lookAtDisk(path: string): Promise<Found> {
  const { bavail, blocks, bsize } = await statfs(path);
  const freeBytes = bavail * bsize;
  const text = `${(freeBytes / 1024 ** 3).toFixed(1)} GiB free on the disk of ${path}`;
  const isLow = bavail < LOW_DISK_RATIO * blocks || freeBytes < LOW_DISK_BYTES;
  const cure = "Make room: on a full disk Redis takes no writes, and hooks are answered 503.";
  return isLow ? warning("disk", text, cure) : ok("disk", text);
}

/** The folder in which a missing one would be made. */
const nearestOf = (path: string): string => (existsSync(path) ? path : nearestOf(dirname(path)));
const isPrivate = ({ mode }: Stats): boolean => (mode & 0o077) === 0;
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
