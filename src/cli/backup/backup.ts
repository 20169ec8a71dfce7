import { existsSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { openRdbTransfer } from "../../bus/backup/rdb-transfer.ts";
import type { Config } from "../../config.ts";
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

export interface BackupWish {
  readonly config: Config;
  /** Undefined: a name by the time, in the working directory. */
  readonly file: string | undefined;
  readonly withoutMasterKey: boolean;
}

/**
 * Writes all that a gateway keeps in its own PostgreSQL and Redis into one file, while it runs or while it does not.
 *
 * Redis first, and PostgreSQL the moment after: all that Redis knows of has its row then, and no number of a channel is given out again.
 * Read the other way round, what moves from Redis to PostgreSQL meanwhile (a dead letter) would be in neither.
 *
 * @throws CommandError
 */
export async function backUp(io: Io, output: Output, wish: BackupWish): Promise<void> {
  const { config, withoutMasterKey } = wish;
  const { signal } = io;
  const createdAt = new Date();
  const dataDir = ownDataDir(config);
  const file = resolve(
    wish.file ?? `inlet-${createdAt.toISOString().replaceAll(/[-:]|\.\d+/g, "")}.backup.tar`,
  );
  if (existsSync(file)) throw usageError(`${file} is there already: a backup replaces no file.`);
  const passphrase = withoutMasterKey ? undefined : await choosePassphrase(io);

  const log = await openLog({ logLevel: "warn" }, process.stderr);
  await using stores = await openEmbeddedStores({ dataDir, log, signal }).catch((error: unknown) => {
    if (!(error instanceof DataDirInUseError)) throw error;
    throw new CommandError(`Nothing is backed up: ${error.message}.`, { exitCode: EXIT.dataDirInUse });
  });
  if (!stores.areRunning) output.note("No gateway runs here: its PostgreSQL and Redis are started for this.");
  using progress = createProgress(io);
  await using archive = await createArchive(file, { signal }).catch((error: unknown) => {
    throw new CommandError(`${file} cannot be written (${(error as NodeJS.ErrnoException).code}).`);
  });
  // The key may change meanwhile: one of those of before and after is that of the snapshot.
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
  progress.show("On its way to the disk");
  const bytes = await archive.finish({ format: FORMAT, ...about });
  progress[Symbol.dispose]();
  tell(output, file, bytes, about);
}

/** @throws CommandError where the stores are not the gateway's own, or there are none */
function ownDataDir({ databaseUrl, redisUrls, dataDir }: Config): string {
  const others = [
    ...(databaseUrl === undefined ? [] : ["DATABASE_URL"]),
    ...(redisUrls.length === 0 ? [] : ["REDIS_URL"]),
  ];
  if (others.length > 0) {
    throw new CommandError(
      `Nothing is backed up: ${others.join(" and ")} names a server that is not Inlet's own, and is backed up by its own tools: /docs/operating says in which order, and why.`,
    );
  }
  if (!existsSync(join(dataDir, "postgres")))
    throw new CommandError(`Nothing is backed up: in ${dataDir} no gateway has been started yet.`);
  // One that would be started for the backup alone holds nothing.
  if (!existsSync(join(dataDir, "redis"))) {
    throw new CommandError(
      `Nothing is backed up: ${dataDir} has no Redis, so that its gateway uses one that REDIS_URL names: give the gateway's settings by --config.`,
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
      `The master key (${masterKey?.id}) is not in it: without a copy of that, its secrets can be read by nobody.`,
      "yellow",
    );
  }
}

const MASTER_KEY_WORDS = {
  none: "none: no gateway has been started on it",
  apart: "not in it",
  sealed: "in it, sealed under the passphrase",
} as const;
