import { open, readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { loadRdb } from "../../bus/backup/load-rdb.ts";
import { hasLocalRedis, startLocalRedis } from "../../bus/connection/local-redis.ts";
import type { Config } from "../../config/schema.ts";
import { openDatabaseLoad } from "../../data/backup/load-database.ts";
import { type Database, openDatabase } from "../../data/database.ts";
import { findLocalPostgres, type PostgresSocket, startLocalPostgres } from "../../data/local-postgres.ts";
import { checkMigrationsKnown, MigrationError, migrate } from "../../data/migrate.ts";
import { UNFINISHED_RESTORE } from "../../gateway/stores.ts";
import { ArchiveError } from "../../lib/archive/archive.ts";
import { checkArchive, readArchive } from "../../lib/archive/read-archive.ts";
import { putMasterKey } from "../../lib/secrets/master-key.ts";
import { acquireDataLock, type DataLock } from "../../lib/servers/data-lock.ts";
import { syncDirectory } from "../../lib/sync-directory.ts";
import type { Log } from "../../log.ts";
import { CommandError, EXIT, usageError } from "../exit.ts";
import type { Io } from "../io.ts";
import type { Output } from "../output/output.ts";
import { bytesText, createProgress, type Progress } from "../output/progress.ts";
import { openLog } from "../process.ts";
import { type BackupAbout, parseAbout, REDIS_PART, tablePart } from "./manifest.ts";
import { openMasterKey, type RestoredKey } from "./master-key.ts";
import { listUnrecoverableData } from "./unrecoverable-data.ts";

export interface RestoreOptions {
  readonly config: Config;
  readonly file: string;
  readonly dataDir: string;
  readonly withoutMasterKey: boolean;
}

interface Restoring {
  readonly file: string;
  /** Absolute path of the data directory, with symbolic links resolved. This process holds the lock of the directory. */
  readonly dataDir: string;
  readonly about: BackupAbout;
  readonly progress: Progress;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Files that the file system or the lock creates. A folder that contains only these files counts as empty. */
const IGNORED_ENTRIES = ["lost+found", "inlet.lock", "inlet.lock-journal", "inlet.pid"];
/**
 * Maximum time in ms until a deleted event is gone from Redis, counted from the start of the deletion, when its database row is
 * written.
 */
const ERASURE_MS = 600_000;

/**
 * Creates a data directory from a backup, after checking the whole backup file. An interrupted restore leaves a marker file, which
 * prevents the gateway from starting until the restore is repeated.
 *
 * @throws CommandError
 */
export async function restore(io: Io, output: Output, options: RestoreOptions): Promise<void> {
  const { config, withoutMasterKey } = options;
  const { signal } = io;
  rejectExternalStores(config);
  await inspectTarget(options.dataDir);
  const file = resolve(options.file);
  using progress = createProgress(io, output);
  const about = await readAbout(file, progress, signal);
  progress[Symbol.dispose]();
  const key = await openMasterKey(io, about.masterKey, {
    ofSettings: config.masterKey,
    leaveOut: withoutMasterKey,
  });
  const log = await openLog({ logLevel: "warn" }, process.stderr);
  using lock = takeDataDir(options.dataDir);
  const { dataDir } = lock;
  // Check the folder again, because another process may have added files before this process locked it.
  const { isUnfinished } = await inspectTarget(dataDir);
  const restoring: Restoring = { file, dataDir, about, progress, log, signal };
  if (isUnfinished) await clear(restoring, output);
  await writeMarker(dataDir);
  const sources = await fill(restoring);
  if (key.kind === "file") await putMasterKey(dataDir, key.key);
  await rm(join(dataDir, UNFINISHED_RESTORE));
  await syncDirectory(dataDir);
  progress[Symbol.dispose]();
  tell(output, { file, dataDir, about, sources, key });
}

/**
 * Rejects a config with external PostgreSQL or Redis, because a backup can only be restored to embedded ones.
 *
 * @throws CommandError
 */
function rejectExternalStores({ databaseUrl, redisUrls }: Config): void {
  if (databaseUrl === undefined && redisUrls.length === 0) return;
  throw usageError(
    "The backup was not restored: DATABASE_URL or REDIS_URL is set, so a gateway would not use the data directory.",
  );
}

async function readAbout(file: string, progress: Progress, signal: AbortSignal): Promise<BackupAbout> {
  try {
    const onBytes = (bytes: number) => progress.show(`Checking the backup: ${bytesText(bytes)}`);
    const about = parseAbout(await checkArchive(file, { signal, onBytes }));
    await checkMigrationsKnown(about.postgres.migrations);
    return about;
  } catch (error) {
    if (error instanceof ArchiveError)
      throw new CommandError(`The backup was not restored: ${file} is incomplete: ${error.message}.`);
    if (error instanceof MigrationError)
      throw new CommandError(
        `The backup was not restored: this version of Inlet cannot restore it. ${error.message}`,
      );
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined)
      throw new CommandError(`The backup was not restored: ${file} cannot be read (${code}).`);
    throw error;
  }
}

/**
 * Checks that the folder is empty or contains an interrupted restore.
 *
 * @throws CommandError if the folder contains other files
 */
async function inspectTarget(dataDir: string): Promise<{ readonly isUnfinished: boolean }> {
  const names: readonly string[] = await readdir(dataDir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw new CommandError(`The backup was not restored: ${dataDir} cannot be read (${error.code}).`);
  });
  const isUnfinished = names.includes(UNFINISHED_RESTORE);
  const [first, ...others] = names.filter((name) => !IGNORED_ENTRIES.includes(name));
  if (first === undefined || isUnfinished) return { isUnfinished };
  throw new CommandError(
    `The backup was not restored: ${dataDir} is not empty (${first}${others.length === 0 ? "" : ` and ${others.length} more`}). Choose an empty or missing folder.`,
  );
}

function takeDataDir(path: string): DataLock {
  const lock = acquireDataLock(path);
  if (lock.ok) return lock.value;
  throw new CommandError(`The backup was not restored: ${lock.error.message}.`, {
    exitCode: EXIT.dataDirInUse,
  });
}

/** Stops the servers that an interrupted restore left running, and removes its files. */
async function clear({ dataDir, log, signal }: Restoring, output: Output): Promise<void> {
  output.note("An earlier restore into this folder was interrupted. Starting over.");
  const [postgres, redis] = await Promise.all([findLocalPostgres(dataDir), hasLocalRedis(dataDir)]);
  if (postgres) await (await startLocalPostgres({ dataDir, log, signal }))[Symbol.asyncDispose]();
  if (redis) await (await startLocalRedis({ dataDir, log, signal }))[Symbol.asyncDispose]();
  for (const name of await readdir(dataDir)) {
    // Keep the marker file until the new restore is complete, so that no gateway starts on partial data.
    if (IGNORED_ENTRIES.includes(name) || name === UNFINISHED_RESTORE) continue;
    await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 5 });
  }
}

async function fill(restoring: Restoring): Promise<number> {
  const { file, dataDir, about, progress, log, signal } = restoring;
  progress.show("Creating PostgreSQL");
  await using postgres = await startLocalPostgres({ dataDir, log, signal });
  const { connection } = postgres;
  // Migrate only to the schema version of the backup, because its rows have that schema. The next start of the gateway runs the
  // remaining migrations.
  await migrate({ connection, log, upTo: about.postgres.migrations.at(-1)?.number ?? 0 });
  await loadTables(restoring, connection);
  await using database = openDatabase({ connection, maxConnections: 1, statementTimeoutMs: 0 });
  const isWanted = (name: string): boolean => name === REDIS_PART;
  const onBytes = (bytes: number) => progress.show(`Redis: ${bytesText(bytes)} of the backup read`);
  for await (const { content } of readArchive(file, { isWanted, onBytes, signal })) {
    const { sources } = await loadRdb({
      dataDir,
      content,
      log,
      signal,
      listTopics: (channelNumber) => topicsOf(database, channelNumber),
      deleted: await erasedAround(database, about.takenAt),
    });
    return sources;
  }
  throw new CommandError(`${file} does not contain ${REDIS_PART}.`);
}

async function loadTables(
  { file, about, progress, signal }: Restoring,
  connection: PostgresSocket,
): Promise<void> {
  const { tables, sequences } = about.postgres;
  const byPart = new Map(tables.map((table) => [tablePart(table.name), table]));
  await using load = await openDatabaseLoad(connection);
  let loaded = 0;
  for await (const { name, content } of readArchive(file, { isWanted: (one) => byPart.has(one), signal })) {
    const table = byPart.get(name);
    if (table === undefined) continue;
    progress.show(`PostgreSQL: ${++loaded} of ${tables.length} tables, ${table.name}`);
    const rows = await load.load(table, content);
    if (rows !== table.rows)
      throw new CommandError(
        `The backup contains ${rows} rows of ${table.name}, but its manifest states ${table.rows}.`,
      );
    byPart.delete(name);
  }
  const [missing] = byPart.values();
  if (missing !== undefined) throw new CommandError(`The backup does not contain the table ${missing.name}.`);
  await load.finish(sequences);
}

async function topicsOf({ db }: Database, channelNumber: number): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("topics")
    .select("topic")
    .where("channelNumber", "=", channelNumber)
    .execute();
  return rows.map(({ topic }) => topic);
}

/**
 * Lists events whose privacy deletion was in progress when the snapshots were taken. The Redis snapshot may still contain these
 * events.
 */
const erasedAround = ({ db }: Database, takenAt: string) =>
  db
    .selectFrom("deletedEvents")
    .select(["topic", "entryId"])
    .where("deletedAt", ">=", new Date(Date.parse(takenAt) - ERASURE_MS))
    .execute();

async function writeMarker(dataDir: string): Promise<void> {
  await using file = await open(join(dataDir, UNFINISHED_RESTORE), "w", 0o600);
  await file.sync();
  await syncDirectory(dataDir);
}

function tell(
  output: Output,
  told: Pick<Restoring, "file" | "dataDir" | "about"> & {
    readonly sources: number;
    readonly key: RestoredKey;
  },
): void {
  const { file, dataDir, about, sources, key } = told;
  const { takenAt, inlet, postgres } = about;
  const rows = postgres.tables.reduce((sum, table) => sum + table.rows, 0);
  const unrecoverable = listUnrecoverableData(takenAt);
  output.one({ dataDir, file, takenAt, inlet, rows, sources, masterKey: key.kind, unrecoverable }, [
    ["restored", dataDir],
    ["backup", file],
    ["taken at", `${takenAt}, by Inlet ${inlet}`],
    ["PostgreSQL", `${rows} rows of ${postgres.tables.length} tables`],
    ["sources", sources],
    ["master key", keyWords(key)],
  ]);
  if (key.kind === "apart") {
    output.note(
      `Before the first start, write the master key (${key.id}) to ${join(dataDir, "master.key")} (mode 0600), or set INLET_MASTER_KEY.`,
      "yellow",
    );
  }
  if (output.isJson) return;
  output.note(`A restore cannot recover:\n${unrecoverable.map((line) => `- ${line}`).join("\n")}`);
  output.note(
    `Stop the old gateway, then start the restored one: INLET_DATA_DIR=${shellText(dataDir)} inlet start`,
  );
}

const shellText = (text: string): string =>
  /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

function keyWords(key: RestoredKey): string {
  switch (key.kind) {
    case "file":
      return "in the data directory";
    case "setting":
      return "from INLET_MASTER_KEY";
    case "apart":
      return `missing (${key.id})`;
    case "none":
      return "none";
    default:
      return key satisfies never;
  }
}
