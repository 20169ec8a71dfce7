import type { z } from "zod";
import { conflict, invalidParameters } from "../../http/errors.ts";
import { findingsOf } from "../../lib/findings.ts";
import type { Deps } from "./deps.ts";
import type { ParamSchemas } from "./params.ts";
import type { Route } from "./route.ts";

/** A group of API routes. */
export interface Resource {
  /** Heading in the API reference. */
  readonly tag: string;
  /** Schemas of the parameters in the paths of the routes. */
  readonly params?: ParamSchemas;
  readonly routes: (deps: Deps) => readonly Route[];
}

/** Validates input with a Zod schema. @throws ApiError 400 that lists each invalid field, with `base` prepended to its path */
export function parseInput<S extends z.ZodType>(
  schema: S,
  input: unknown,
  base: readonly PropertyKey[] = [],
): z.output<S> {
  const parsed = schema.safeParse(input);
  if (!parsed.success) throw invalidParameters(findingsOf(parsed.error, input, base));
  return parsed.data;
}

const MAX_ATTEMPTS = 5;

/**
 * Runs an optimistic write until it succeeds.
 * @param attempt reads, checks and writes; returns `undefined` if the version changed in between
 * @throws ApiError 409 if five attempts fail because of concurrent changes
 */
export async function retryVersionConflicts<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const written = await attempt();
    if (written !== undefined) return written;
  }
  throw conflict("Other requests are changing this resource at the same time. Try again.");
}
