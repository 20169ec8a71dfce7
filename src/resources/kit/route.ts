import type { Context } from "hono";
import type { z } from "zod";
import type { ApiEnv, Caller, RequestEnv } from "../../http/context.ts";
import type { Answer, HandlerResult } from "./answer.ts";
import type { ParamSchemas } from "./params.ts";

/** The parameters of a query, by name. */
export type QuerySchema = z.ZodObject;

/** Everything about a route but what it does: it mounts, validates and documents it. */
export interface RouteSpec<
  P extends ParamSchemas,
  Q extends QuerySchema,
  B extends z.ZodType,
  A extends Answer,
> {
  readonly method: "get" | "post" | "put" | "delete";
  /** Below its resource's path: `/`, `/:roleId`, `/list`. */
  readonly path: string;
  /** How the path is matched where its parameters are not one segment each, and how they are read from the match. */
  readonly matched?: { readonly path: string; readonly params: (c: Context) => Record<string, string> };
  /** The operation's name in clients that are generated, unique: `updateRole`. */
  readonly operation: string;
  /** One line: what it does. */
  readonly summary: string;
  /** More that a client has to know. */
  readonly description?: string;
  /** One schema for each parameter of the whole path, that of the resource included; what does not fit is a 404. */
  readonly params?: P;
  /** A plain object of strings. A value that does not fit, an unknown name and a repeated one are 400. */
  readonly query?: Q;
  /** Those who send others here add what they like to the query. */
  readonly anyQuery?: true;
  /** A strict object: unknown fields are a 400. No body counts as `{}`. */
  readonly body?: B;
  readonly answer: A;
  /** Default: `<first noun of the path>.read` for GET and `POST …/list`, else `.write`. Null: any caller may. */
  readonly permission?: string | null;
  /** A permission without which its answer is poorer: what it leaves out says so in its schema. */
  readonly reveals?: string;
  /** Callers that need no permission for that one. */
  readonly allows?: (caller: Caller, params: Readonly<Record<string, string>>) => boolean;
  /** The parameter of its path by which it is open to tokens that are good for one thing alone, for that thing. */
  readonly confined?: string;
  /** It is open to another issuer's token that names no organization. */
  readonly unplaced?: true;
  /** It makes something: a client may send `Idempotency-Key`. */
  readonly creates?: true;
  /** When it answers 404, where that is not told by its path alone: its body names something too. */
  readonly missing?: string;
  /** When it answers 409. */
  readonly conflict?: string;
  /** The answer carries an `ETag` (`showVersion`); a PUT or DELETE heeds `If-Match` (`requireMatch`). */
  readonly versioned?: true;
}

/** The checked request. */
interface Checked<P extends ParamSchemas, Q extends QuerySchema, B extends z.ZodType> {
  readonly params: { readonly [K in keyof P]: z.output<P[K]> };
  readonly query: z.output<Q>;
  readonly body: z.output<B>;
}

/** The argument of a handler; `c` is for rare needs: a request's header, its signal, a header of the answer. */
export interface Input<P extends ParamSchemas, Q extends QuerySchema, B extends z.ZodType>
  extends Checked<P, Q, B> {
  readonly caller: Caller;
  readonly c: Context<ApiEnv>;
}

/** The same where nobody is known. */
export interface PublicInput<P extends ParamSchemas, Q extends QuerySchema, B extends z.ZodType>
  extends Checked<P, Q, B> {
  readonly c: Context<RequestEnv>;
}

/** A route as the API mounts it. */
export interface Route extends RouteSpec<ParamSchemas, QuerySchema, z.ZodType, Answer> {
  /** Needs no token. */
  readonly isPublic: boolean;
  readonly handle: (input: Input<ParamSchemas, QuerySchema, z.ZodType>) => Promise<unknown>;
}

/**
 * A route of the management API as data, with what it does. Checks come in this order: token (401), permission (403), query
 * and body (400), path (404); the handler comes after all of them and throws what it finds (404, 409).
 */
export function defineRoute<
  A extends Answer,
  P extends ParamSchemas = Record<never, never>,
  Q extends QuerySchema = QuerySchema,
  B extends z.ZodType = z.ZodUndefined,
>(spec: RouteSpec<P, Q, B, A>, handle: (input: Input<P, Q, B>) => Promise<HandlerResult<A>>): Route {
  // Its input was parsed by its own schemas.
  return { ...spec, isPublic: false, handle: handle as Route["handle"] };
}

/** A route that needs no token: there is no caller. */
export function definePublicRoute<
  A extends Answer,
  P extends ParamSchemas = Record<never, never>,
  Q extends QuerySchema = QuerySchema,
  B extends z.ZodType = z.ZodUndefined,
>(spec: RouteSpec<P, Q, B, A>, handle: (input: PublicInput<P, Q, B>) => Promise<HandlerResult<A>>): Route {
  return { ...spec, permission: null, isPublic: true, handle: handle as unknown as Route["handle"] };
}
