import { type RawBuilder, sql } from "kysely";
import { z } from "zod";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import type { Finding } from "../../lib/errors.ts";
import { issueMessage } from "../../lib/issue-message.ts";

export const FIELD_KINDS = [
  "text",
  "number",
  "boolean",
  "date",
  "dateTime",
  "email",
  "url",
  "choice",
  "json",
] as const;
type FieldKind = (typeof FIELD_KINDS)[number];
type FieldRow = Row<"collectionFields">;

declare module "../../data/tables.ts" {
  interface Tables {
    /** Values of unique fields, one row per value. The primary key prevents duplicates. */
    collectionUniqueValues: {
      fieldId: string;
      /** SHA-256 of the value as JSON. */
      digest: Buffer;
      recordId: string;
    };
  }
}

/** Values by field id. Null values are omitted. */
export type StoredValues = Readonly<Record<string, unknown>>;

const MAX_TEXT = 65_536;

/** A time in RFC 3339 format (section 5.6). It is stored in UTC with milliseconds, like all times in the API. */
const dateTime = z.iso
  .datetime({ offset: true, error: "must be an RFC 3339 time, for example 2026-01-31T09:30:00Z" })
  .transform((text) => new Date(text))
  .refine((time) => Number.isFinite(time.getTime()) && /^\d{4}-/.test(time.toISOString()), {
    error: "must be between the years 0 and 9999",
  })
  .transform((time) => time.toISOString());

const VALUES: Readonly<Record<Exclude<FieldKind, "choice">, z.ZodType>> = {
  text: z.string("must be a string").max(MAX_TEXT),
  number: z.number("must be a number"),
  boolean: z.boolean("must be true or false"),
  date: z.iso.date("must be a date, for example 2026-01-31"),
  dateTime,
  email: z.email("must be an email address").max(320),
  url: z
    .string("must be an http or https URL")
    .regex(/^https?:\/\/\S+$/, "must be an http or https URL")
    .max(2_048),
  // `JSON.stringify` would turn an infinite number into null.
  json: z.unknown().refine((value) => typeof value !== "number" || Number.isFinite(value), "must be JSON"),
};

/** Validates values keyed by field name, and returns the values to store, keyed by field id. Null counts as missing. */
export function readValues(
  fields: readonly FieldRow[],
  given: Readonly<Record<string, unknown>>,
): { readonly values: StoredValues } | { readonly findings: readonly Finding[] } {
  const findings: Finding[] = [];
  const names = new Set(fields.map(({ name }) => name));
  for (const name of Object.keys(given)) {
    if (!names.has(name))
      findings.push({ path: `values.${name}`, message: "is not a field of the collection" });
  }
  const values: [string, unknown][] = [];
  for (const field of fields) {
    const path = `values.${field.name}`;
    const value = Object.hasOwn(given, field.name) ? given[field.name] : null;
    if (value === null || value === undefined) {
      if (field.required) findings.push({ path, message: "is required" });
      continue;
    }
    const read = schemaOf(field).safeParse(value);
    if (read.success) values.push([field.id, read.data]);
    else
      findings.push({
        path,
        message: read.error.issues.map((issue) => issueMessage(issue, value)).join("; "),
      });
  }
  return findings.length > 0 ? { findings } : { values: Object.fromEntries(values) };
}

const schemaOf = ({ kind, options }: FieldRow): z.ZodType =>
  kind === "choice"
    ? z.custom((value) => options.some((option) => option === value), "must be one of the field's options")
    : VALUES[kind];

/** Returns a record's values keyed by field name, in the order in which the fields were created. Missing values are `null`. */
export const showValues = (
  fields: readonly FieldRow[],
  stored: StoredValues,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    fields.map(({ id, name }) => [name, Object.hasOwn(stored, id) ? stored[id] : null] as const),
  );

export const fieldsOf = (db: Queryable, collectionId: string): Promise<FieldRow[]> =>
  db
    .selectFrom("collectionFields")
    .selectAll()
    .where("collectionId", "=", collectionId)
    .orderBy("createdAt")
    .orderBy("id")
    .execute();

/**
 * Stores the values of unique fields in `collection_unique_values`, whose primary key rejects duplicates.
 * @throws DatabaseError with a unique violation if another record has the same value
 */
export async function noteUniqueValues(
  trx: Trx,
  fieldIds: readonly string[],
  records: RawBuilder<unknown>,
): Promise<void> {
  if (fieldIds.length === 0) return;
  await sql`
    INSERT INTO collection_unique_values (field_id, digest, record_id)
    SELECT field.id, sha256(convert_to((record.values -> field.id)::text, 'UTF8')), record.id
    FROM collection_records AS record, unnest(${[...fieldIds]}::text[]) AS field (id)
    WHERE ${records} AND record.values -> field.id IS NOT NULL`.execute(trx);
}
