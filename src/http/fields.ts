import { z } from "zod";

/** A time as the API shows it: RFC 3339, UTC, milliseconds. */
export const timestamp = z.iso.datetime({ precision: 3 }).meta({ example: "2026-01-31T09:30:00.000Z" });

/** A time as a client writes it, in milliseconds since the epoch. */
export const timeInput = z.iso
  .datetime({ offset: true, error: "must be an RFC 3339 time" })
  .transform((text) => Date.parse(text));

/** An id as the API shows it. */
export const id = (prefix: string): z.ZodString => z.string().meta({ example: idExample(prefix) });

/** An id with that prefix, for examples. */
export const idExample = (prefix: string): string => `${prefix}_01jc9x2k4v8m3n5p7q9r1s0`;

/** The answer to a DELETE. */
export const deleted = z.object({ id: z.string() }).meta({ id: "Deleted", description: "What was deleted." });

/** The output of a schema, for reading only: rows and constants go out as they are. */
export type Shown<T> = T extends object ? { readonly [K in keyof T]: Shown<T[K]> } : T;
