import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import { sql } from "kysely";
import type { Queryable } from "../../src/data/database.ts";

/** Secrets that a test plants, by what they are: each is a text that stands nowhere else. */
export type Canaries = Map<string, string>;

/** Makes a secret that every header, query and setting takes. */
export function plant(canaries: Canaries, what: string): string {
  const text = `canary${randomBytes(18).toString("hex")}`;
  canaries.set(what, text);
  return text;
}

/** Texts that are searched, by where they stand. */
export type Places = Map<string, string>;

/** Where which secret shows, plainly or in an encoding that anybody undoes. */
export const findCanaries = (canaries: Canaries, places: Places): readonly string[] =>
  [...canaries].flatMap(([what, secret]) => {
    const forms = formsOf(secret);
    return [...places]
      .filter(([, text]) => forms.some((form) => text.includes(form)))
      .map(([place]) => `${what} in ${place}`);
  });

/** A text in base64 has three spellings, by its distance from the beginning; only their middle is the same in every text. */
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

/** All rows of all tables, bytes in hex. */
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

/** All keys with all that stands in them, as bytes. */
export async function readKeys(client: Redis, places: Places): Promise<void> {
  const texts = (values: readonly unknown[]): string =>
    values
      .map((value) => (Buffer.isBuffer(value) ? value.toString("latin1") : texts(value as [])))
      .join("\n");
  for (const key of await client.keys("*")) {
    const type = await client.type(key);
    // A job that has ended meanwhile.
    if (type === "none") continue;
    const read = {
      string: async () => [await client.getBuffer(key)],
      hash: async () => Object.entries(await client.hgetallBuffer(key)).map(([k, v]) => [Buffer.from(k), v]),
      list: () => client.lrangeBuffer(key, 0, -1),
      set: () => client.smembersBuffer(key),
      zset: () => client.zrangeBuffer(key, "0", "-1"),
      stream: () => client.xrangeBuffer(key, "-", "+"),
    }[type as "string"];
    if (!read) throw new Error(`${key} is of no known type`);
    places.set(`key ${key}`, `${key}\n${texts(await read())}`);
  }
}
