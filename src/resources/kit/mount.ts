import type { Context, Hono } from "hono";
import type { z } from "zod";
import { requireAllowed } from "../../http/callers/authorize.ts";
import type { ApiEnv, Caller } from "../../http/context.ts";
import { invalidParameters, notFound } from "../../http/errors.ts";
import type { DoOnce } from "../../http/idempotency.ts";
import { answerList, type Listed } from "../../http/page.ts";
import { readJson, requireFitText } from "../../http/read-json.ts";
import { isKnown } from "../../http/version.ts";
import { withoutNulls } from "../../http/without-nulls.ts";
import { isList } from "./answer.ts";
import type { Deps } from "./deps.ts";
import type { ParamSchemas } from "./params.ts";
import { parseInput, type Resource } from "./resource.ts";
import type { QuerySchema, Route } from "./route.ts";

export interface MountedRoute extends Route {
  readonly tag: string;
  readonly method: "get" | "post" | "put" | "delete";
  /** Path below the API version prefix. Parameters are written as `:name`. */
  readonly path: string;
  readonly params: ParamSchemas;
  /** Permission that the caller needs, or `null` if every caller may use the route. */
  readonly permission: string | null;
}

/**
 * Collects the routes of all resources, sorted so that the router matches static path segments before parameters.
 * @throws Error if a resource has no schema for a parameter in the path of one of its routes
 */
export function collectRoutes(resources: readonly Resource[], deps: Deps): readonly MountedRoute[] {
  return resources
    .flatMap((resource) => resource.routes(deps).map((route) => mountedRoute(resource, route)))
    .map((route) => ({ route, rank: rank(route.path) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : Number(a.rank > b.rank)))
    .map(({ route }) => route);
}

function mountedRoute({ tag, params: known = {} }: Resource, route: Route): MountedRoute {
  const [verb = "", path = ""] = route.at.split(" ");
  const method = verb.toLowerCase() as MountedRoute["method"];
  const params = Object.fromEntries(
    [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name = ""]) => {
      const schema = known[name];
      if (schema === undefined) throw new Error(`${route.at}: the resource declares no parameter ${name}`);
      return [name, schema];
    }),
  );
  if (route.confined !== undefined && !(route.confined in params))
    throw new Error(`${route.at} has no parameter ${route.confined}`);
  const permission = route.permission === undefined ? computePermission(method, path) : route.permission;
  return { ...route, tag, method, path, params, permission };
}

/** Derives the permission of a route from its path and method: `GET /knowledge-bases/:id` requires `knowledgeBases.read`. */
function computePermission(method: string, path: string): string {
  const [, noun = ""] = path.split("/");
  const camelCased = noun.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return `${camelCased}.${isRead(method, path) ? "read" : "write"}`;
}

/** Returns whether a request only reads data. `POST …/list` also reads: it has its page parameters in the body. */
export const isRead = (method: string, path: string): boolean =>
  method.toLowerCase() === "get" || (method.toLowerCase() === "post" && path.endsWith("/list"));

/** Sort key of a path. Static segments sort before parameters. */
const rank = (path: string): string =>
  path
    .split("/")
    .map((segment) => (segment.startsWith(":") ? "1" : "0"))
    .join("");

/** Registers a route. Before the handler runs, a request must pass the checks of permission, query, body and path. */
export function mountRoute(api: Hono<ApiEnv>, route: MountedRoute, doOnce: DoOnce): void {
  const { method, matched, path } = route;
  api.on(method, matched?.path ?? path, async (c) => {
    if (!route.isPublic && !route.allows?.(c.get("caller"), c.req.param()))
      requireAllowed(c.get("caller"), route);
    const query = readQuery(route, c);
    const sent = route.body && (await readBody(c));
    const body =
      route.body &&
      parseInput(route.body, withoutNulls(route.body, sent, method === "put" ? "patch" : "body"));
    const params = parseParams(route, c);
    const act = async (): Promise<Response> =>
      respond(c, route, await route.handle({ caller: c.get("caller"), params, query, body, c }));
    return route.creates ? doOnce(c, sent, act) : act();
  });
}

function respond(c: Context<ApiEnv>, { method, answer, versioned }: MountedRoute, result: unknown): Response {
  if (result instanceof Response) return result;
  if (versioned && method === "get" && isKnown(c)) return c.body(null, 304);
  return isList(answer) ? answerList(c, result as Listed<unknown>) : c.json(result as object);
}

/** Parses the query parameters. @throws ApiError 400 that lists each unknown, repeated or invalid parameter */
function readQuery({ query, anyQuery }: Route, c: Context): z.output<QuerySchema> {
  const given = c.req.query();
  requireFitText(given);
  if (!anyQuery) {
    const known = query?.shape ?? {};
    const findings = Object.entries(c.req.queries()).flatMap(([path, values]) => {
      if (!Object.hasOwn(known, path)) return [{ path, message: "is not a parameter of this operation" }];
      return values.length > 1 ? [{ path, message: "must not appear more than once" }] : [];
    });
    if (findings.length > 0) throw invalidParameters(findings);
  }
  return query ? parseInput(query, given) : {};
}

async function readBody(c: Context): Promise<unknown> {
  const body = await readJson(c);
  return body === undefined ? {} : body;
}

function parseParams(
  { params, matched }: MountedRoute,
  c: Context<ApiEnv>,
): Readonly<Record<string, string>> {
  const given: Record<string, string> = matched?.params(c) ?? c.req.param();
  const { caller }: Partial<ApiEnv["Variables"]> = c.var;
  return Object.fromEntries(
    Object.entries(params).map(([name, schema]) => {
      const parsed = schema.safeParse(isOutOfReach(caller, name, given[name]) ? "" : given[name]);
      if (!parsed.success) throw notFound(parsed.error.issues[0]?.message ?? "resource");
      return [name, parsed.data];
    }),
  );
}

/** Returns whether the caller's token is limited to one entity and the path contains a different one. */
const isOutOfReach = (caller: Caller | undefined, param: string, value: string | undefined): boolean =>
  caller?.confinedTo?.param === param && caller.confinedTo.id !== value;
