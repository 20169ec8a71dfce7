import { createHmac, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { sql } from "kysely";
import type { Clock } from "../lib/clock.ts";
import type { CodeStore } from "../lib/json-schema/compiler.ts";
import type { GeneratedCode } from "../lib/json-schema/generate/generate.ts";
import { generatorId } from "../lib/json-schema/generate/generator-id.ts";
import type { Log } from "../log.ts";
import type { Queryable } from "./database.ts";

const compress = promisify(gzip);
const decompress = promisify(gunzip);

const MAX_CODE_BYTES = 64 * 1024 * 1024;
/** Minimum time between two updates of `usedAt`, in ms. */
const NOTE_USE_MS = 24 * 3_600_000;
const MAX_UNUSED_MS = 30 * NOTE_USE_MS;
const MAX_KEPT_BYTES = 512 * 1024 * 1024;
const PRUNE_EVERY_MS = 3_600_000;

/**
 * Stores compiled schema code in the database.
 *
 * A person who can only write to the table must not be able to run code in the gateway. Each row therefore has a MAC under
 * `macKey`, which is checked before the code is used. If the check fails, or the database is unavailable, the schema is compiled
 * again.
 */
export function createCodeStore(deps: {
  readonly db: Queryable;
  readonly macKey: Buffer;
  readonly clock: Clock;
  readonly log: Log;
}): CodeStore {
  const { db, macKey, clock, log } = deps;
  const generator = generatorId();
  let prunedAtMs = Number.NEGATIVE_INFINITY;

  const macOf = (digest: string, { cost, patternSize }: Omit<GeneratedCode, "code">, code: Buffer): Buffer =>
    createHmac("sha256", macKey)
      .update(`${generator}\n${digest}\n${cost}\n${patternSize}\n`)
      .update(code)
      .digest();

  async function find(digest: string): Promise<GeneratedCode | undefined> {
    const row = await db
      .selectFrom("schemaCode")
      .select(["cost", "patternSize", "code", "mac", "usedAt"])
      .where("digest", "=", digest)
      .where("generator", "=", generator)
      .executeTakeFirst();
    if (!row) return undefined;
    const mac = macOf(digest, row, row.code);
    if (row.mac.length !== mac.length || !timingSafeEqual(row.mac, mac)) {
      log.warn(
        { event: "schema_code.mac_wrong", digest },
        "stored schema code was modified, or created under another master key; the schema is compiled again",
      );
      return undefined;
    }
    const nowMs = clock();
    if (nowMs - row.usedAt.getTime() > NOTE_USE_MS) {
      await db
        .updateTable("schemaCode")
        .set({ usedAt: new Date(nowMs) })
        .where("digest", "=", digest)
        .where("generator", "=", generator)
        .execute();
    }
    const code = await decompress(row.code, { maxOutputLength: MAX_CODE_BYTES });
    return { code: code.toString(), cost: row.cost, patternSize: row.patternSize };
  }

  async function keep(digest: string, generated: GeneratedCode): Promise<void> {
    const { cost, patternSize } = generated;
    const code = await compress(generated.code);
    const nowMs = clock();
    const content = { cost, patternSize, code, bytes: code.length, mac: macOf(digest, generated, code) };
    const row = { ...content, usedAt: new Date(nowMs) };
    await db
      .insertInto("schemaCode")
      .values({ digest, generator, ...row })
      .onConflict((conflict) => conflict.columns(["digest", "generator"]).doUpdateSet(row))
      .execute();
    if (nowMs - prunedAtMs < PRUNE_EVERY_MS) return;
    prunedAtMs = nowMs;
    await sql`
      DELETE FROM schema_code WHERE used_at < ${new Date(nowMs - MAX_UNUSED_MS)} OR (digest, generator) IN (
        SELECT digest, generator
        FROM (SELECT digest, generator, sum(bytes) OVER (ORDER BY used_at DESC) AS total FROM schema_code) AS kept
        WHERE total > ${MAX_KEPT_BYTES})`.execute(db);
  }

  return {
    find: (digest) =>
      find(digest).catch((error: unknown) => {
        log.debug({ event: "schema_code.not_read", err: error }, "stored schema code cannot be read");
        return undefined;
      }),
    keep: (digest, generated) => {
      keep(digest, generated).catch((error: unknown) =>
        log.debug({ event: "schema_code.not_kept", err: error }, "schema code could not be stored"),
      );
    },
  };
}
