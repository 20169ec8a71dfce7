import type { Context, Hono } from "hono";
import type { z } from "zod";
import type { ApiEnv } from "../http/context.ts";
import { readJson } from "../http/read-json.ts";
import { parseInput } from "./resource.ts";

/** A resource that mounts its routes itself. */
export interface PlainResource<Deps> {
  readonly path: string;
  readonly create: (deps: Deps) => Hono<ApiEnv>;
}

/** The request's body by that schema; no body counts as `{}`. @throws ApiError 400, 413, 415 */
export async function parseBody<S extends z.ZodType>(c: Context, schema: S): Promise<z.output<S>> {
  const body = await readJson(c);
  return parseInput(schema, body === undefined ? {} : body);
}

/** The query by that schema; a repeated name counts once. @throws ApiError 400 */
export function parseQuery<S extends z.ZodType>(c: Context, schema: S): z.output<S> {
  return parseInput(schema, c.req.query());
}

/** A path parameter; what is missing reads as "", which names nothing. */
export const pathParam = (c: Context, name: string): string => c.req.param(name) ?? "";
