import { z } from "zod";

/** A time in API responses: RFC 3339, UTC, with milliseconds. */
export const timestamp = z.iso.datetime({ precision: 3 }).meta({ example: "2026-01-31T09:30:00.000Z" });

/** A time in API requests, parsed to milliseconds since the Unix epoch. */
export const timeInput = z.iso
  .datetime({ offset: true, error: "must be an RFC 3339 time" })
  .transform((text) => Date.parse(text));

export const id = (prefix: string): z.ZodString => z.string().meta({ example: idExample(prefix) });

export const idExample = (prefix: string): string => `${prefix}_01jc9x2k4v8m3n5p7q9r1s0`;

export const deleted = z
  .object({ id: z.string() })
  .meta({ id: "Deleted", description: "The deleted resource." });

/** Deeply read-only version of a schema's output, so that rows and constants can be returned without copying. */
export type Shown<T> = T extends object ? { readonly [K in keyof T]: Shown<T[K]> } : T;
