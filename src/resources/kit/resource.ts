import type { z } from "zod";
import { conflict, invalidParameters } from "../../http/errors.ts";
import { findingsOf } from "../../lib/findings.ts";
import type { Route } from "./route.ts";

/**
 * A resource of the management API, listed in `resources.ts`.
 *
 * `path` is the prefix of its routes, such as `/apps/:appId/channels`. The first segment names the permissions: `apps.read`
 * and `apps.write`. `tag` is the heading in the API reference.
 */
export interface Resource<Deps> {
  readonly path: string;
  readonly tag: string;
  readonly routes: (deps: Deps) => readonly Route[];
}

/** Validates input. @throws ApiError 400 whose details name each invalid field, with `base` in front of its path */
export function parseInput<S extends z.ZodType>(
  schema: S,
  input: unknown,
  base: readonly PropertyKey[] = [],
): z.output<S> {
  const parsed = schema.safeParse(input);
  if (!parsed.success) throw invalidParameters(findingsOf(parsed.error, base));
  return parsed.data;
}

const MAX_ATTEMPTS = 5;

/**
 * Repeats an optimistic write until it succeeds.
 *
 * @param attempt reads, checks and writes; returns `undefined` when the version changed between reading and writing
 * @throws ApiError 409 when concurrent changes prevent the write in five attempts
 */
export async function retryVersionConflicts<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const written = await attempt();
    if (written !== undefined) return written;
  }
  throw conflict("Other requests are changing this resource at the same time. Try again.");
}
