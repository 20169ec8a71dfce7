import { writeFile } from "node:fs/promises";
import { sql } from "kysely";
import { sealAddress } from "../../src/data/channels/address-columns.ts";
import { openDatabase } from "../../src/data/database.ts";
import { openKeyring } from "../../src/data/keyring/keyring.ts";
import { findLocalPostgres } from "../../src/data/local-postgres.ts";
import { createChannelId } from "../../src/lib/secrets/channel-id.ts";

const BATCH = 2_000;
/** A plausible number of channels per blueprint. */
const CHANNELS_PER_APP = 10;

/**
 * Copies a channel many times into new apps by SQL, because the API would take minutes. Writes the same rows as the API. Writes the paths
 * of the hooks to a file as a JSON array.
 */
export async function copyChannel(options: {
  /** Data directory of a running gateway: absolute path without symbolic links. */
  readonly dataDir: string;
  readonly masterKey: Buffer;
  readonly appId: string;
  readonly times: number;
  readonly pathsFile: string;
}): Promise<void> {
  const { dataDir, masterKey, appId, times, pathsFile } = options;
  const connection = await findLocalPostgres(dataDir);
  if (connection === undefined) throw new Error("the gateway has no embedded PostgreSQL");
  await using database = openDatabase({ connection, statementTimeoutMs: 0 });
  const { db } = database;
  const keyring = await openKeyring({ db, masterKey, clock: Date.now });
  const { number } = await db
    .selectFrom("channels")
    .select("number")
    .where("appId", "=", appId)
    .executeTakeFirstOrThrow();
  // Reserves the numbers in the sequence, because a gateway may install its own channel in the meantime.
  const {
    rows: [taken],
  } = await sql<{ last: number }>`SELECT setval(sequence, nextval(sequence) + ${times}) AS last
    FROM pg_get_serial_sequence('channels', 'number') AS sequence`.execute(db);
  const prefix = appId.slice(0, -8);
  await sql`INSERT INTO apps (id, uid, title, blueprint_id, organization_id, space_id, created_at, updated_at)
    SELECT ${prefix} || lpad(n::text, 8, '0'), uid, title, blueprint_id, organization_id, space_id, created_at, updated_at
    FROM apps CROSS JOIN generate_series(0, ${Math.ceil(times / CHANNELS_PER_APP) - 1}::int) AS n
    WHERE id = ${appId}`.execute(db);
  const paths: string[] = [];
  const first = Number(taken?.last) - times + 1;
  for (let done = 0; done < times; done += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, times - done) }, (_, n) => first + done + n);
    const addresses = numbers.map(() => createChannelId(keyring.channelIdKey));
    const sealed = addresses.map((address, n) => sealAddress(keyring, numbers[n] ?? 0, address));
    paths.push(...addresses.map((address) => `/hooks/${address}`));
    await sql`INSERT INTO channels (number, address_hash, sealed_address, app_id, organization_id, uid, kind, title, config,
        events, state, version, from_blueprint, created_at, updated_at)
      SELECT v.number, v.hash, v.sealed, ${prefix} || lpad(((v.number - ${first}) / ${CHANNELS_PER_APP})::text, 8, '0'),
        c.organization_id, c.uid || '-' || v.number, c.kind, c.title, c.config, c.events, c.state, c.version, c.from_blueprint,
        c.created_at, c.updated_at
      FROM channels AS c CROSS JOIN unnest(${numbers}::bigint[], ${sealed.map(({ addressHash }) => addressHash)}::bytea[],
        ${sealed.map(({ sealedAddress }) => sealedAddress)}::text[]) AS v(number, hash, sealed)
      WHERE c.number = ${number}`.execute(db);
  }
  await sql`INSERT INTO topics (topic, organization_id, app_id, channel_number, channel_uid, type, max_age_seconds, max_entries,
      max_bytes, created_at)
    SELECT 'events.' || c.organization_id || '.apps.app.event_received.' || c.app_id || '.' || c.uid || '.' || t.type,
      c.organization_id, c.app_id, c.number, c.uid, t.type, t.max_age_seconds, t.max_entries, t.max_bytes, t.created_at
    FROM channels AS c CROSS JOIN topics AS t WHERE t.channel_number = ${number} AND c.number >= ${first}`.execute(
    db,
  );
  await sql`ANALYZE channels, topics, apps`.execute(db);
  await writeFile(pathsFile, JSON.stringify(paths));
}
