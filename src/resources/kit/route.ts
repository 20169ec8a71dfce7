import type { Context } from "hono";
import type { z } from "zod";
import type { ApiEnv, Caller, RequestEnv } from "../../http/context.ts";
import type { Answer, HandlerResult } from "./answer.ts";
import type { ParamSchemas } from "./params.ts";

export type QuerySchema = z.ZodObject;

/** Declaration of a route without its handler. It is used to register, validate and document the route. */
export interface RouteSpec<
  P extends ParamSchemas,
  Q extends QuerySchema,
  B extends z.ZodType,
  A extends Answer,
> {
  readonly method: "get" | "post" | "put" | "delete";
  /** Path relative to that of the resource, such as `/`, `/:roleId` or `/list`. */
  readonly path: string;
  /** Custom router pattern, and a function that reads its parameters. Needed when a parameter spans several path segments. */
  readonly matched?: { readonly path: string; readonly params: (c: Context) => Record<string, string> };
  /** Unique operation id, such as `updateRole`. Generated clients use it as a method name. */
  readonly operation: string;
  readonly summary: string;
  readonly description?: string;
  /** Schema of each parameter in the full path. A parameter that does not match results in a 404. */
  readonly params?: P;
  /** Schema of the query parameters. Invalid, unknown and repeated parameters result in a 400. */
  readonly query?: Q;
  /** Accepts unknown query parameters, because servers that redirect to this route may add their own. */
  readonly anyQuery?: true;
  /** Schema of the JSON body. It must be strict, so that unknown fields result in a 400. A missing body is read as `{}`. */
  readonly body?: B;
  readonly answer: A;
  /**
   * Permission that the caller needs, or `null` for none. Default: the first path segment with `.read` for GET and
   * `POST …/list`, and with `.write` otherwise.
   */
  readonly permission?: string | null;
  /** Without this permission, some response fields are omitted or `null`. The schemas of these fields mention it. */
  readonly reveals?: string;
  /** Returns true for callers that may use the route without the permission. */
  readonly allows?: (caller: Caller, params: Readonly<Record<string, string>>) => boolean;
  /** Path parameter that identifies an entity. Tokens confined to that entity may use the route without the permission. */
  readonly confined?: string;
  /** Accepts tokens of an external issuer that name no organization. */
  readonly unplaced?: true;
  /** The route creates an entity, so clients may send `Idempotency-Key`. */
  readonly creates?: true;
  /** Condition of the 404 response in the API reference. Needed when the body also refers to entities. */
  readonly missing?: string;
  /** Condition of the 409 response in the API reference. */
  readonly conflict?: string;
  /** The handler sets an `ETag` (`showVersion`), and checks `If-Match` (`requireMatch`) for PUT and DELETE. */
  readonly versioned?: true;
}

interface Checked<P extends ParamSchemas, Q extends QuerySchema, B extends z.ZodType> {
  readonly params: { readonly [K in keyof P]: z.output<P[K]> };
  readonly query: z.output<Q>;
  readonly body: z.output<B>;
}

export interface Input<P extends ParamSchemas, Q extends QuerySchema, B extends z.ZodType>
  extends Checked<P, Q, B> {
  readonly caller: Caller;
  readonly c: Context<ApiEnv>;
}

export interface PublicInput<P extends ParamSchemas, Q extends QuerySchema, B extends z.ZodType>
  extends Checked<P, Q, B> {
  readonly c: Context<RequestEnv>;
}

export interface Route extends RouteSpec<ParamSchemas, QuerySchema, z.ZodType, Answer> {
  readonly isPublic: boolean;
  readonly handle: (input: Input<ParamSchemas, QuerySchema, z.ZodType>) => Promise<unknown>;
}

/**
 * Defines a route of the management API.
 *
 * Requests are checked in this order: token (401), permission (403), query and body (400), path (404). The handler runs
 * after all checks and throws further errors (404, 409).
 */
export function defineRoute<
  A extends Answer,
  P extends ParamSchemas = Record<never, never>,
  Q extends QuerySchema = QuerySchema,
  B extends z.ZodType = z.ZodUndefined,
>(spec: RouteSpec<P, Q, B, A>, handle: (input: Input<P, Q, B>) => Promise<HandlerResult<A>>): Route {
  // The cast is safe: the input is always parsed with the schemas of this spec.
  return { ...spec, isPublic: false, handle: handle as Route["handle"] };
}

/** Defines a route that requires no token and therefore has no caller. */
export function definePublicRoute<
  A extends Answer,
  P extends ParamSchemas = Record<never, never>,
  Q extends QuerySchema = QuerySchema,
  B extends z.ZodType = z.ZodUndefined,
>(spec: RouteSpec<P, Q, B, A>, handle: (input: PublicInput<P, Q, B>) => Promise<HandlerResult<A>>): Route {
  return { ...spec, permission: null, isPublic: true, handle: handle as unknown as Route["handle"] };
}
