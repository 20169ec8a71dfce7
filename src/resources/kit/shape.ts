import type { Selectable } from "kysely";
import { z } from "zod";
import type { Timestamps } from "../../data/columns.ts";
import { id, type Shown } from "../../http/fields.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import {
  type AnswerOf,
  type ColumnOf,
  type Field,
  type Fields,
  type SchemaOf,
  toField,
  type WrittenOf,
} from "./field.ts";
import { times } from "./fields.ts";

export type TableOf<F extends Fields> = {
  [K in keyof F as [ColumnOf<F[K]>] extends [never] ? never : K]: ColumnOf<F[K]>;
} & Omit<{ id: string; organizationId: string } & Timestamps, keyof F>;
export type RowOf<F extends Fields> = Selectable<TableOf<F>>;

type InputShape<F extends Fields> = {
  [K in keyof F as WrittenOf<F[K]> extends "never" ? never : K]: SchemaOf<F[K]>;
};
/** Type of the fields that a PUT can change, with the patch applied. */
export type ContentOf<F extends Fields> = z.output<
  z.ZodObject<{ [K in keyof F as WrittenOf<F[K]> extends "always" ? K : never]: SchemaOf<F[K]> }>
>;
/** Types of all field values, as in requests. */
export type ValuesOf<F extends Fields> = { readonly [K in keyof F]: z.output<SchemaOf<F[K]>> };

type Scalars<F extends Fields> = { id: z.ZodString } & {
  [K in keyof F as AnswerOf<F[K]> extends z.ZodType ? K : never]: Extract<AnswerOf<F[K]>, z.ZodType>;
} & Omit<typeof times, keyof F>;
/** Schema of an entity nested in another one. Its type contains only its own fields, because full types would be circular. */
export type Inside<F extends Fields> = z.ZodType<z.output<z.ZodObject<Scalars<F>>>>;
type EntityShape<F extends Fields, X extends z.ZodRawShape> = Omit<Scalars<F>, keyof X> & X;
type Answer<F extends Fields, X extends z.ZodRawShape> = Shown<z.output<z.ZodObject<EntityShape<F, X>>>>;
/** Type of a shape's response: `type Agent = EntityOf<typeof agent>`. */
export type EntityOf<S extends { readonly entity: z.ZodType }> = Shown<z.output<S["entity"]>>;
export type AnsweredRow<F extends Fields, X> = Selectable<
  {
    [K in keyof F as AnswerOf<F[K]> extends z.ZodType ? Exclude<K, keyof X> : never]: ColumnOf<F[K]>;
  } & Omit<{ id: string } & Timestamps, keyof F>
>;
/** Parts of a response that are not read from columns. */
export type InsideOf<X extends z.ZodRawShape> = Partial<Shown<z.output<z.ZodObject<X>>>>;

export interface ShapeSpec<F extends Fields, X extends z.ZodRawShape> {
  readonly prefix: string;
  readonly fields: F;
  /**
   * Response parts that are not fields, such as nested entities and computed values. An optional part is always present
   * in the entity's own response, and never when the entity is nested in another one.
   */
  readonly inside?: X;
  /** Rejects invalid combinations of values, in the body of a POST and in the result of a PUT. */
  readonly check?: (content: ContentOf<F>, context: z.RefinementCtx) => void;
  readonly meta: { readonly id: string; readonly description: string };
}

export interface Shape<F extends Fields, X extends z.ZodRawShape = Record<never, never>> {
  readonly prefix: string;
  readonly fields: { readonly [K in keyof F]: Field };
  readonly entity: z.ZodObject<EntityShape<F, X>>;
  /** Schema for this entity when it is nested in another entity. */
  readonly part: Inside<F>;
  /** Body schema of a POST. */
  readonly input: z.ZodObject<InputShape<F>, z.core.$strict>;
  /** Schema of the fields that a PUT can change, for validation after the patch is applied. */
  readonly content: z.ZodObject;
  /** Renders a row as a response. Parts missing in `inside` are omitted if optional, and otherwise empty: `null`, `[]` or `{}`. */
  readonly render: (row: AnsweredRow<F, X>, inside?: InsideOf<X>) => Answer<F, X>;
  /** Row and value types, for TypeScript only. Always `undefined` at runtime. */
  readonly types?: { readonly row: RowOf<F>; readonly values: ValuesOf<F> };
}
export type RowOfShape<S extends { readonly types?: { readonly row: unknown } }> = NonNullable<
  S["types"]
>["row"];

export function shape<F extends Fields, X extends z.ZodRawShape = Record<never, never>>({
  prefix,
  fields: entries,
  inside,
  check,
  meta,
}: ShapeSpec<F, X>): Shape<F, X> {
  const fields = Object.entries(entries).map(([name, entry]) => [name, toField(entry)] as const);
  const answered = fields.filter(([, { answer }]) => answer !== null);
  const schemasOf = (...written: readonly string[]) =>
    Object.fromEntries(
      fields.filter(([, one]) => written.includes(one.written)).map(([name, one]) => [name, one.schema]),
    );
  const made = fields.flatMap(([name, one]) => (one.made ? [[name, one.made] as const] : []));
  const answers = Object.fromEntries(answered.map(([name, { answer }]) => [name, answer]));
  // Copies property descriptors instead of values, so that getters stay lazy. Entities that contain each other need lazy getters.
  const parts = Object.getOwnPropertyDescriptors(inside ?? {});
  const whole = Object.entries(parts).filter(([, { value }]) => value instanceof z.ZodOptional);
  const dates = Object.entries(times).filter(([name]) => !(name in entries));
  const answeredShape = { id: id(prefix), ...answers, ...Object.fromEntries(dates) };
  const entityShape = Object.defineProperties({ ...answeredShape }, parts);
  const partShape = Object.defineProperties({ ...answeredShape }, parts);
  for (const [name, { value }] of whole) {
    Object.defineProperty(entityShape, name, { ...parts[name], value: value.unwrap() });
    Reflect.deleteProperty(partShape, name);
  }
  const checked = (body: z.ZodObject) =>
    check ? body.superRefine(check as (values: object, context: z.RefinementCtx) => void) : body;
  const content = checked(z.strictObject(schemasOf("always")));

  const columns = answered.filter(([name]) => !(name in parts));
  let empty: Readonly<Record<string, unknown>> | undefined;

  const render = (row: Readonly<Record<string, unknown>>, given: Readonly<Record<string, unknown>> = {}) => {
    empty ??= Object.fromEntries(
      Object.keys(parts).map((name) => [name, findEmptyValue(inside?.[name] as z.ZodType)]),
    );
    return {
      id: row.id,
      ...Object.fromEntries(columns.map(([name, field]) => [name, field.fromColumn(row[name])])),
      ...empty,
      ...given,
      ...Object.fromEntries(dates.map(([name]) => [name, formatTimestamp((row[name] as Date).getTime())])),
    };
  };

  // TypeScript cannot derive these types through `Object.entries`, so a cast is needed.
  return {
    prefix,
    fields: Object.fromEntries(fields),
    entity: z.object(entityShape as z.ZodRawShape).meta(meta),
    part: z.object(partShape as z.ZodRawShape).meta({
      id: `${meta.id}Part`,
      description: `${meta.id} as a part of another response. Its own nested entities are null or omitted.`,
    }),
    input: checked(z.strictObject({ ...schemasOf("always", "once"), ...Object.fromEntries(made) })),
    content,
    render,
  } as unknown as Shape<F, X>;
}

const findEmptyValue = (schema: z.ZodType): unknown =>
  [undefined, null, [], {}].find((empty) => schema.safeParse(empty).success);
