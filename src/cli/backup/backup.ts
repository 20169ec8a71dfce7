import { existsSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { openRdbTransfer } from "../../bus/backup/rdb-transfer.ts";
import type { Config } from "../../config/schema.ts";
import { openDatabaseSnapshot } from "../../data/backup/database-snapshot.ts";
import { DataDirInUseError, openEmbeddedStores } from "../../gateway/stores.ts";
import { type ArchiveWriter, createArchive } from "../../lib/archive/write-archive.ts";
import { CommandError, EXIT, usageError } from "../exit.ts";
import type { Io } from "../io.ts";
import type { Output } from "../output/output.ts";
import { bytesText, createProgress, type Progress } from "../output/progress.ts";
import { openLog } from "../process.ts";
import { type BackupAbout, FORMAT, REDIS_PART, tablePart } from "./manifest.ts";
import { choosePassphrase, findMasterKeys, sealMasterKey } from "./master-key.ts";

export interface BackupOptions {
  readonly config: Config;
  /** Path of the backup file. By default, a file in the working directory with the current time in its name. */
  readonly file: string | undefined;
  readonly withoutMasterKey: boolean;
}

/**
 * Backs up the embedded PostgreSQL and Redis into one file, whether the gateway is running or stopped.
 *
 * Takes the Redis snapshot first and the PostgreSQL snapshot right after it. Every object in the Redis snapshot then has its row,
 * and no internal channel id is assigned twice. In the other order, a backup could lack a dead letter that moves from Redis to
 * PostgreSQL between the snapshots.
 *
 * @throws CommandError
 */
export async function backUp(io: Io, output: Output, options: BackupOptions): Promise<void> {
  const { config, withoutMasterKey } = options;
  const { signal } = io;
  const createdAt = new Date();
  const dataDir = ownDataDir(config);
  const file = resolve(
    options.file ?? `inlet-${createdAt.toISOString().replaceAll(/[-:]|\.\d+/g, "")}.backup.tar`,
  );
  if (existsSync(file))
    throw usageError(`${file} already exists. Choose another name, because a backup never replaces a file.`);
  const passphrase = withoutMasterKey ? undefined : await choosePassphrase(io);

  const log = await openLog({ logLevel: "warn" }, process.stderr);
  await using stores = await openEmbeddedStores({ dataDir, log, signal }).catch((error: unknown) => {
    if (!(error instanceof DataDirInUseError)) throw error;
    throw new CommandError(`No backup was created: ${error.message}.`, { exitCode: EXIT.dataDirInUse });
  });
  if (!stores.areRunning)
    output.note("The gateway is not running. Its PostgreSQL and Redis are started for the backup.");
  using progress = createProgress(io, output);
  await using archive = await createArchive(file, { signal }).catch((error: unknown) => {
    throw new CommandError(`${file} cannot be written (${(error as NodeJS.ErrnoException).code}).`);
  });
  // Read the master key before and after the snapshot, because it may be rotated during the backup. One of the two results fits the
  // snapshot.
  const keysBefore = await findMasterKeys(config, dataDir);
  using transfer = await openRdbTransfer(stores.redis, signal);
  const takenAt = new Date();
  await using snapshot = await openDatabaseSnapshot(stores.postgres);
  const keys = [...keysBefore, ...(await findMasterKeys(config, dataDir))];
  const masterKey = await sealMasterKey(snapshot, keys, passphrase);

  let redisBytes = 0;
  await archive.add(REDIS_PART, transfer.content, (bytes) => {
    redisBytes = bytes;
    progress.show(`Redis: ${bytesText(bytes)}`);
  });
  const tables = await addTables(archive, snapshot, progress);
  const about: BackupAbout = {
    inlet: packageJson.version,
    createdAt: createdAt.toISOString(),
    takenAt: takenAt.toISOString(),
    redis: { version: transfer.version, bytes: redisBytes },
    postgres: {
      version: snapshot.version,
      migrations: [...snapshot.migrations],
      tables,
      sequences: await snapshot.sequences(),
    },
    masterKey,
  };
  progress.show("Writing to disk");
  const bytes = await archive.finish({ format: FORMAT, ...about });
  progress[Symbol.dispose]();
  tell(output, file, bytes, about);
}

/**
 * Returns the resolved path of the data directory.
 *
 * @throws CommandError if PostgreSQL or Redis is not embedded, or does not exist yet
 */
function ownDataDir({ databaseUrl, redisUrls, dataDir }: Config): string {
  const others = [
    ...(databaseUrl === undefined ? [] : ["DATABASE_URL"]),
    ...(redisUrls.length === 0 ? [] : ["REDIS_URL"]),
  ];
  if (others.length > 0) {
    throw new CommandError(
      `No backup was created: ${others.join(" and ")} is set, so the stores are not embedded. Back them up with their own tools; /docs/operating explains the order.`,
    );
  }
  if (!existsSync(join(dataDir, "postgres")))
    throw new CommandError(`No backup was created: no gateway has been started in ${dataDir} yet.`);
  // Require an existing Redis folder. Otherwise, the backup would start a new, empty Redis.
  if (!existsSync(join(dataDir, "redis"))) {
    throw new CommandError(
      `No backup was created: ${dataDir} has no Redis, so its gateway uses REDIS_URL. Pass the gateway's settings with --config.`,
    );
  }
  return realpathSync(dataDir);
}

async function addTables(
  archive: ArchiveWriter,
  { tables, copy }: Awaited<ReturnType<typeof openDatabaseSnapshot>>,
  progress: Progress,
): Promise<BackupAbout["postgres"]["tables"]> {
  const added: BackupAbout["postgres"]["tables"] = [];
  for (const table of tables) {
    const { content, rows } = copy(table);
    await archive.add(tablePart(table.name), content, (bytes) =>
      progress.show(
        `PostgreSQL: ${added.length + 1} of ${tables.length} tables, ${bytesText(bytes)} of ${table.name}`,
      ),
    );
    added.push({ name: table.name, columns: [...table.columns], rows: rows() });
  }
  return added;
}

function tell(output: Output, file: string, bytes: number, about: BackupAbout): void {
  const { takenAt, redis, postgres, masterKey } = about;
  const rows = postgres.tables.reduce((sum, table) => sum + table.rows, 0);
  const migration = postgres.migrations.at(-1)?.name ?? null;
  const key = masterKey === null ? "none" : masterKey.sealed === null ? "apart" : "sealed";
  const redisBytes = redis.bytes;
  const value = {
    file,
    bytes,
    takenAt,
    redisBytes,
    tables: postgres.tables.length,
    rows,
    migration,
    masterKey: key,
  };
  output.one(value, [
    ["backup", file],
    ["size", bytesText(bytes)],
    ["taken at", takenAt],
    ["Redis", bytesText(redisBytes)],
    ["PostgreSQL", `${rows} rows of ${postgres.tables.length} tables, ${migration}`],
    ["master key", MASTER_KEY_WORDS[key]],
  ]);
  if (key === "apart") {
    output.note(
      `The backup does not contain the master key (${masterKey?.id}). Without a copy of that key, its secrets cannot be read.`,
      "yellow",
    );
  }
}

const MASTER_KEY_WORDS = {
  none: "not created yet",
  apart: "not included",
  sealed: "included, encrypted with the passphrase",
} as const;
