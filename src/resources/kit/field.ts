import type { ColumnType } from "kysely";
import { z } from "zod";
import type { Caller } from "../../http/context.ts";
import { timestamp } from "../../http/fields.ts";
import { formatTimestamp } from "../../lib/clock.ts";

/**
 * A resource field. Request bodies, the response, the column and the row type are all derived from this one declaration.
 *
 * A plain Zod schema declares a field that clients can write, that responses include, and that is stored unchanged. The
 * functions below declare deviations from that, and can be combined: `readOnly(time(timestamp.nullable()))`.
 */
export interface Field<
  S extends z.ZodType = z.ZodType,
  Column = unknown,
  A extends z.ZodType | null = z.ZodType | null,
  W extends Written = Written,
> {
  readonly schema: S;
  /** Schema of the value in responses, or `null` if responses do not contain the field. */
  readonly answer: A;
  readonly written: W;
  /** Schema of the value when the entity is created with POST. Default: `schema`. */
  readonly made?: z.ZodType;
  /** Whether the table has a column for the field. If false, hooks of the resource read and write the value. */
  readonly stored: boolean;
  readonly toColumn: (value: unknown) => unknown;
  readonly fromColumn: (column: unknown) => unknown;
  readonly orElse?: ((fresh: NewRow) => unknown) | undefined;
  /** Type of the column, for TypeScript only. Always `undefined` at runtime. */
  readonly column?: Column;
}

/** Which request bodies may contain the field: POST and PUT (`always`), POST only (`once`), or none (`never`). */
export type Written = "always" | "once" | "never";

/** Data of a new row, passed to functions that compute default values. */
export interface NewRow {
  readonly id: string;
  readonly caller: Caller;
}

export type Entry = z.ZodType | Field;
export type Fields = Readonly<Record<string, Entry>>;

type Value<S extends z.ZodType> = Exclude<z.output<S>, undefined>;
type NullIn<S extends z.ZodType> = unknown extends Value<S> ? null : Extract<Value<S>, null>;
export type SchemaOf<E> = E extends Field<infer S> ? S : E extends z.ZodType ? E : never;
export type AnswerOf<E> =
  E extends Field<z.ZodType, unknown, infer A> ? A : E extends z.ZodType ? z.ZodType<Value<E>> : never;
export type ColumnOf<E> = E extends Field<z.ZodType, infer C> ? C : E extends z.ZodType ? Value<E> : never;
export type WrittenOf<E> = E extends Field<z.ZodType, unknown, z.ZodType | null, infer W> ? W : "always";
type With<
  E extends Entry,
  W extends Written = WrittenOf<E>,
  A extends z.ZodType | null = AnswerOf<E>,
> = Field<SchemaOf<E>, ColumnOf<E>, A, W>;

/** Converts a Zod schema to a field with default settings. If `entry` already is a `Field`, returns `entry`. */
export const toField = (entry: Entry): Field =>
  entry instanceof z.ZodType
    ? {
        schema: entry,
        answer: toAnswerSchema(entry),
        written: "always",
        stored: true,
        toColumn: (value) => value,
        fromColumn: (column) => (column instanceof Date ? formatTimestamp(column.getTime()) : column),
      }
    : entry;

/** Copies a field with changes. Callers declare the resulting type, because TypeScript cannot infer it. */
const change = <F extends Field>(entry: Entry, changes: Partial<Field>): F =>
  ({ ...toField(entry), ...changes }) as F;

/** Field that is stored in a JSON column. `null` is stored as SQL NULL instead of JSON `null`. */
export const json = <S extends z.ZodType, A extends z.ZodType = z.ZodType<Value<S>>>(
  schema: S,
  answer?: A,
): Field<S, ColumnType<z.output<A>, string | NullIn<S>, string | NullIn<S>>, A, "always"> =>
  change(schema, {
    ...(answer !== undefined && { answer }),
    toColumn: (value) => (value === null ? null : JSON.stringify(value)),
  });

/** Field for a point in time: a string in the API, a timestamp in the table. */
export const time = <S extends z.ZodType<string | null>>(
  schema: S,
): Field<
  S,
  ColumnType<Date | NullIn<S>, Date | NullIn<S>, Date | NullIn<S>>,
  z.ZodType<Value<S>>,
  "always"
> =>
  change(schema, {
    answer: toAnswerSchema(schema, timestamp),
    toColumn: (value) => (typeof value === "string" ? new Date(value) : value),
  });

/** Field for a number that is stored exactly, in a SQL decimal column. The database driver returns such numbers as text. */
export const decimal = <S extends z.ZodType<number>>(
  schema: S,
): Field<S, ColumnType<string, number, number>, z.ZodType<number>, "always"> =>
  change(schema, { fromColumn: Number });

/** Makes a field immutable: requests can set it at creation only. */
export const once = <E extends Entry>(entry: E): With<E, "once"> => change(entry, { written: "once" });

/** Makes a field read-only for requests. The default value (`orElse`) or a hook of the resource sets it. */
export const readOnly = <E extends Entry>(
  entry: E,
): With<E, "never", E extends z.ZodType ? E : AnswerOf<E>> =>
  change(entry, { written: "never", ...(entry instanceof z.ZodType && { answer: entry }) });

export const writeOnly = <E extends Entry>(entry: E): With<E, WrittenOf<E>, null> =>
  change(entry, { answer: null });

/** Never part of a request or a response. */
export const hidden = <E extends Entry>(entry: E): With<E, "never", null> =>
  change(entry, { written: "never", answer: null });

/** Validates the field with `made` in the body of a POST, and with the field's normal schema in a PUT. */
export const withCreateSchema = <E extends Entry>(entry: E, made: z.ZodType): With<E> =>
  change(entry, { made });

/** Field of request bodies without a column and without a response value. Hooks of the resource store the value elsewhere. */
export const unstored = <S extends z.ZodType>(schema: S): Field<S, never, null, "always"> =>
  change(schema, { stored: false, answer: null });

/** Sets the schema for responses. By default, it is derived from the request schema. */
export const withAnswer = <E extends Entry, A extends z.ZodType>(
  entry: E,
  answer: A,
): With<E, WrittenOf<E>, A> => change(entry, { answer });

/** Computes the value when the request omits it. */
export const orElse = <E extends Entry>(entry: E, value: (fresh: NewRow) => unknown): With<E> =>
  change(entry, { orElse: value });

// Shared by all fields, because each schema takes 700 bytes.
const STRING = z.string();
const INTEGER = z.int();
const NUMBER = z.number();
const UNKNOWN = z.unknown();

/**
 * Derives a response schema from a request schema: the same type, description and example, without limits and defaults.
 * Limits apply to new writes only, and values stored before a limit was introduced must still be returned.
 *
 * @param text replaces each string schema
 */
function toAnswerSchema(written: z.ZodType, text: z.ZodType = STRING): z.ZodType {
  const { description, example } = written.meta() ?? {};
  const meta = {
    ...(description !== undefined && { description }),
    ...(example !== undefined && { example }),
  };
  const answer = withoutLimits(written, text);
  return Object.keys(meta).length > 0 ? answer.meta({ ...answer.meta(), ...meta }) : answer;
}

function withoutLimits(written: z.ZodType, text: z.ZodType): z.ZodType {
  const inner = (schema: unknown): z.ZodType => toAnswerSchema(schema as z.ZodType, text);
  if (written instanceof z.ZodDefault || written instanceof z.ZodOptional) return inner(written.unwrap());
  if (written instanceof z.ZodNullable) return inner(written.unwrap()).nullable();
  if (written instanceof z.ZodArray) return z.array(inner(written.element));
  if (written instanceof z.ZodObject) {
    const fields = Object.entries(written.shape as Record<string, z.ZodType>);
    return z.object(Object.fromEntries(fields.map(([name, field]) => [name, toMemberSchema(field, inner)])));
  }
  if (written instanceof z.ZodString || written instanceof z.ZodStringFormat) return text;
  if (written instanceof z.ZodNumberFormat) return INTEGER;
  if (written instanceof z.ZodNumber) return NUMBER;
  if (written instanceof z.ZodUnknown) return UNKNOWN;
  return written;
}

/** If requests may omit a member, stored values may lack the member too. */
const toMemberSchema = (field: z.ZodType, inner: (schema: z.ZodType) => z.ZodType): z.ZodType =>
  field instanceof z.ZodOptional ? inner(field).optional() : inner(field);
