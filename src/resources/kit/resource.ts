import type { z } from "zod";
import { findingsOf } from "../../http/findings.ts";
import { conflict, invalidParameters } from "../../http/problem.ts";
import type { Route } from "./route.ts";

/**
 * One resource of the management API: a folder below this file and a line in `resources.ts`. `path` stands before the paths
 * of its routes, below the version (`/apps/:appId/channels`); its first noun names the permissions (`apps.read`,
 * `apps.write`). `tag` is its heading in the documentation.
 */
export interface Resource<Deps> {
  readonly path: string;
  readonly tag: string;
  readonly routes: (deps: Deps) => readonly Route[];
}

/** @throws ApiError 400 whose details name each field below `base`. */
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
 * Repeats a read, check and write until the write meets the version that was read; it answers undefined where it did not.
 *
 * @throws ApiError 409 when others keep coming first.
 */
export async function retryVersionConflicts<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const written = await attempt();
    if (written !== undefined) return written;
  }
  throw conflict("It was changed by others at the same time; try again.");
}
