import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import { sql } from "kysely";
import type { Queryable } from "../../src/data/database.ts";

/** Secrets planted by a test, by description. Each is a text that occurs nowhere else. */
export type Canaries = Map<string, string>;

/** Creates a secret that is valid in every header, query and setting. */
export function plant(canaries: Canaries, what: string): string {
  const text = `canary${randomBytes(18).toString("hex")}`;
  canaries.set(what, text);
  return text;
}

/** Texts to search, by place. */
export type Places = Map<string, string>;

/** Finds the places that contain a secret, either plain or in an encoding that anyone can decode. */
export const findCanaries = (canaries: Canaries, places: Places): readonly string[] =>
  [...canaries].flatMap(([what, secret]) => {
    const forms = formsOf(secret);
    return [...places]
      .filter(([, text]) => forms.some((form) => text.includes(form)))
      .map(([place]) => `${what} in ${place}`);
  });

/** A text has three base64 forms, depending on its byte offset. Only the middle part is the same in every surrounding text. */
function formsOf(secret: string): readonly string[] {
  const inBase64 = [0, 1, 2].map((before) =>
    Buffer.concat([Buffer.alloc(before), Buffer.from(secret)])
      .toString("base64")
      .slice(4, -4),
  );
  const inBase64Url = inBase64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"));
  return [
    ...[secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)],
    ...[Buffer.from(secret).toString("hex"), ...inBase64, ...inBase64Url],
  ];
}

/** Reads all rows of all tables, with bytes in hex. */
export async function readTables(db: Queryable, places: Places): Promise<void> {
  const tables = await sql<{ name: string }>`
    SELECT table_name AS name FROM information_schema.tables
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`.execute(db);
  for (const { name } of tables.rows) {
    const { rows } = await sql<{ text: string | null }>`
      SELECT string_agg(one::text, E'\n') AS text FROM ${sql.table(name)} AS one`.execute(db);
    places.set(`table ${name}`, rows[0]?.text ?? "");
  }
}

/** Reads all keys with their entire contents, as bytes. */
export async function readKeys(client: Redis, places: Places): Promise<void> {
  const texts = (values: readonly unknown[]): string =>
    values
      .map((value) => (Buffer.isBuffer(value) ? value.toString("latin1") : texts(value as [])))
      .join("\n");
  for (const key of await client.keys("*")) {
    const type = await client.type(key);
    // The key of a job that has ended in the meantime.
    if (type === "none") continue;
    const read = {
      string: async () => [await client.getBuffer(key)],
      hash: async () => Object.entries(await client.hgetallBuffer(key)).map(([k, v]) => [Buffer.from(k), v]),
      list: () => client.lrangeBuffer(key, 0, -1),
      set: () => client.smembersBuffer(key),
      zset: () => client.zrangeBuffer(key, "0", "-1"),
      stream: () => client.xrangeBuffer(key, "-", "+"),
    }[type as "string"];
    if (!read) throw new Error(`${key} has an unknown type`);
    places.set(`key ${key}`, `${key}\n${texts(await read())}`);
  }
}
