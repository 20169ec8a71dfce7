import type { ColumnType } from "kysely";
import { z } from "zod";
import type { Caller } from "../../http/context.ts";
import { timestamp } from "../../http/fields.ts";
import { formatTimestamp } from "../../lib/clock.ts";

/**
 * Fields of a resource, each written once: bodies, answer, column and row type follow from it. A plain Zod schema is a field
 * that clients write, that is answered, and whose column holds the value as it is. The functions below say what differs; they
 * compose: `kept(time(timestamp.nullable()))`.
 */
export interface Field<
  S extends z.ZodType = z.ZodType,
  Column = unknown,
  A extends z.ZodType | null = z.ZodType | null,
  W extends Written = Written,
> {
  /** Its value: what a body holds, where one does. */
  readonly schema: S;
  /** As it is answered; null: it is not. */
  readonly answer: A;
  readonly written: W;
  /** Its value in the body of a POST; default: the same. */
  readonly made?: z.ZodType;
  /** False: it has no column; hooks read and write it. */
  readonly stored: boolean;
  readonly toColumn: (value: unknown) => unknown;
  readonly fromColumn: (column: unknown) => unknown;
  /** Its value in a new row where none is given. */
  readonly orElse?: ((fresh: NewRow) => unknown) | undefined;
  /** For types alone. */
  readonly column?: Column;
}

/** The bodies that hold a field: those of POST and PUT, of POST alone, none. */
export type Written = "always" | "once" | "never";

/** The facts about a row that is being made. */
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

/** The entry with all that it leaves unsaid. */
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

/** The field with changes; its type is that of the call. */
const change = <F extends Field>(entry: Entry, changes: Partial<Field>): F =>
  ({ ...toField(entry), ...changes }) as F;

/** Kept as JSON; null is SQL's null. */
export const json = <S extends z.ZodType, A extends z.ZodType = z.ZodType<Value<S>>>(
  schema: S,
  answer?: A,
): Field<S, ColumnType<z.output<A>, string | NullIn<S>, string | NullIn<S>>, A, "always"> =>
  change(schema, {
    ...(answer !== undefined && { answer }),
    toColumn: (value) => (value === null ? null : JSON.stringify(value)),
  });

/** A time: text in bodies and answers, a timestamp in the table. */
export const time = <S extends z.ZodType<string | null>>(
  schema: S,
): Field<
  S,
  ColumnType<Date | NullIn<S>, Date | NullIn<S>, Date | NullIn<S>>,
  z.ZodType<Value<S>>,
  "always"
> =>
  change(schema, {
    answer: toAnswerSchema(schema, () => timestamp),
    toColumn: (value) => (typeof value === "string" ? new Date(value) : value),
  });

/** A number that the table keeps as an exact decimal, which is read as text. */
export const decimal = <S extends z.ZodType<number>>(
  schema: S,
): Field<S, ColumnType<string, number, number>, z.ZodType<number>, "always"> =>
  change(schema, { fromColumn: Number });

/** Given when it is made, and never changed. */
export const once = <E extends Entry>(entry: E): With<E, "once"> => change(entry, { written: "once" });

/** Never in a body: `orElse` or hooks write it. A schema is that of the answer, as it is. */
export const readOnly = <E extends Entry>(
  entry: E,
): With<E, "never", E extends z.ZodType ? E : AnswerOf<E>> =>
  change(entry, { written: "never", ...(entry instanceof z.ZodType && { answer: entry }) });

/** Never in an answer. */
export const writeOnly = <E extends Entry>(entry: E): With<E, WrittenOf<E>, null> =>
  change(entry, { answer: null });

/** Never in a body or an answer. */
export const hidden = <E extends Entry>(entry: E): With<E, "never", null> =>
  change(entry, { written: "never", answer: null });

/** Made with other values than it can be changed to. */
export const withCreateSchema = <E extends Entry>(entry: E, made: z.ZodType): With<E> =>
  change(entry, { made });

/** In bodies alone: hooks read it from elsewhere, and write it there. */
export const unstored = <S extends z.ZodType>(schema: S): Field<S, never, null, "always"> =>
  change(schema, { stored: false, answer: null });

/** Answered by another schema than the one that follows from what is written. */
export const withAnswer = <E extends Entry, A extends z.ZodType>(
  entry: E,
  answer: A,
): With<E, WrittenOf<E>, A> => change(entry, { answer });

/** With a value that is computed where none is given. */
export const orElse = <E extends Entry>(entry: E, value: (fresh: NewRow) => unknown): With<E> =>
  change(entry, { orElse: value });

/**
 * The schema of an answer after that of what is written: the same type, description and example, without limits and defaults.
 * Limits bind what is written from now on; what was written before them is answered all the same. `textOf` says what stands
 * for a text.
 */
function toAnswerSchema(written: z.ZodType, textOf: () => z.ZodType = () => z.string()): z.ZodType {
  const { description, example } = written.meta() ?? {};
  const meta = {
    ...(description !== undefined && { description }),
    ...(example !== undefined && { example }),
  };
  const answer = withoutLimits(written, textOf);
  return Object.keys(meta).length > 0 ? answer.meta({ ...answer.meta(), ...meta }) : answer;
}

function withoutLimits(written: z.ZodType, textOf: () => z.ZodType): z.ZodType {
  const inner = (schema: unknown): z.ZodType => toAnswerSchema(schema as z.ZodType, textOf);
  if (written instanceof z.ZodDefault || written instanceof z.ZodOptional) return inner(written.unwrap());
  if (written instanceof z.ZodNullable) return inner(written.unwrap()).nullable();
  if (written instanceof z.ZodArray) return z.array(inner(written.element));
  if (written instanceof z.ZodObject) {
    const fields = Object.entries(written.shape as Record<string, z.ZodType>);
    return z.object(Object.fromEntries(fields.map(([name, field]) => [name, toMemberSchema(field, inner)])));
  }
  if (written instanceof z.ZodString || written instanceof z.ZodStringFormat) return textOf();
  if (written instanceof z.ZodNumberFormat) return z.int();
  if (written instanceof z.ZodNumber) return z.number();
  if (written instanceof z.ZodUnknown) return z.unknown();
  return written;
}

/** A member that may be left out may be missing from what was stored. */
const toMemberSchema = (field: z.ZodType, inner: (schema: z.ZodType) => z.ZodType): z.ZodType =>
  field instanceof z.ZodOptional ? inner(field).optional() : inner(field);
