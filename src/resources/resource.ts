import type { Context, Hono } from "hono";
import type { z } from "zod";
import type { ApiEnv } from "../http/context.ts";
import { findingsOf } from "../http/findings.ts";
import { conflict, invalidParameters } from "../http/problem.ts";
import { readJson } from "../http/read-json.ts";

/**
 * One resource of the management API: a folder below this file and a line in `resources.ts`. `path` is where its routes are
 * mounted below the version (`/apps/:appId/channels`); its first noun names the permissions (`apps.read`, `apps.write`).
 * The caller is authenticated and allowed before a route runs.
 */
export interface Resource<Deps> {
  readonly path: string;
  readonly create: (deps: Deps) => Hono<ApiEnv>;
}

/**
 * The request's body by that schema; no body counts as `{}`.
 *
 * @throws ApiError 400 whose details name each field, 413, 415
 */
export async function parseBody<S extends z.ZodType>(c: Context, schema: S): Promise<z.output<S>> {
  const body = await readJson(c);
  return parseInput(schema, body === undefined ? {} : body);
}

/** The query by that schema; a repeated name counts once. @throws ApiError 400 */
export function parseQuery<S extends z.ZodType>(c: Context, schema: S): z.output<S> {
  return parseInput(schema, c.req.query());
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

/** A path parameter; what is missing reads as "", which names nothing. */
export const pathParam = (c: Context, name: string): string => c.req.param(name) ?? "";

const MAX_ATTEMPTS = 5;

/**
 * Repeats a read, check and write until the write meets the version that was read; it answers undefined where it did not.
 *
 * @throws ApiError 409 when others keep coming first.
 */
export async function writeOnce<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const written = await attempt();
    if (written !== undefined) return written;
  }
  throw conflict("It was changed by others at the same time; try again.");
}
