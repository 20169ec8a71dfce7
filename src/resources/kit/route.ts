import type { Context } from "hono";
import type { z } from "zod";
import type { ApiEnv, Caller } from "../../http/context.ts";
import type { Answer, HandlerResult } from "./answer.ts";

export type QuerySchema = z.ZodObject;

/** Method and whole path below the API version prefix, such as `GET /apps/:appId/topics`. */
export type Endpoint = `${"GET" | "POST" | "PUT" | "DELETE"} /${string}`;

type NamesIn<Path extends string> = Path extends `${string}/:${infer Name}/${infer Rest}`
  ? Name | NamesIn<`/${Rest}`>
  : Path extends `${string}/:${infer Name}`
    ? Name
    : never;
/** Path parameters of an endpoint. */
export type ParamsOf<At extends Endpoint> = Readonly<Record<NamesIn<At>, string>>;

/** Declaration of a route, without its handler. It defines how the route is registered, validated and documented. */
export interface RouteSpec<
  At extends Endpoint,
  Q extends QuerySchema,
  B extends z.ZodType,
  A extends Answer,
> {
  /** The resource declares a schema for each parameter. If a parameter does not match its schema, the response is a 404. */
  readonly at: At;
  /** Custom router pattern with a function that reads its parameters, for parameters that span several path segments. */
  readonly matched?: { readonly path: string; readonly params: (c: Context) => Record<string, string> };
  /** Unique operation id, such as `updateRole`. Client generators use it as the method name. */
  readonly operation: string;
  readonly summary: string;
  readonly description?: string;
  /** Schema of the query parameters. If one is invalid, unknown or repeated, the response is a 400. */
  readonly query?: Q;
  /** Accepts unknown query parameters, because other servers redirect to this route and may add their own. */
  readonly anyQuery?: true;
  /** Schema of the JSON body. It must be strict, so that unknown fields get a 400. A missing body counts as `{}`. */
  readonly body?: B;
  readonly answer: A;
  /**
   * Permission that the caller needs, or `null` for none. Default: the first path segment, with `.read` for GET and
   * `POST …/list`, and with `.write` for other requests.
   */
  readonly permission?: string | null;
  /** Permission for some of the response fields. Without it, these fields are omitted or `null`. */
  readonly reveals?: string;
  /** Returns true if the caller may use the route without having its permission. */
  readonly allows?: (caller: Caller, params: Readonly<Record<string, string>>) => boolean;
  /** Path parameter with an entity's id. A token limited to this entity may use the route without having its permission. */
  readonly confined?: string;
  /** Accepts tokens of an external issuer that do not name an organization. */
  readonly unplaced?: true;
  /** Whether the route creates an entity. If so, clients may send `Idempotency-Key`. */
  readonly creates?: true;
  /** Condition of the 404 response for the API reference, for routes whose body also refers to entities. */
  readonly missing?: string;
  /** Condition of the 409 response, as shown in the API reference. */
  readonly conflict?: string;
  /**
   * Whether the route has an `ETag`. Its handler calls `showVersion`, and for PUT and DELETE also checks `If-Match` with `requireMatch`.
   */
  readonly versioned?: true;
}

export interface Input<At extends Endpoint, Q extends QuerySchema, B extends z.ZodType> {
  readonly caller: Caller;
  readonly params: ParamsOf<At>;
  readonly query: z.output<Q>;
  readonly body: z.output<B>;
  readonly c: Context<ApiEnv>;
}

export interface Route extends RouteSpec<Endpoint, QuerySchema, z.ZodType, Answer> {
  readonly isPublic: boolean;
  readonly handle: (
    input: Input<Endpoint, QuerySchema, z.ZodType> & { readonly params: Readonly<Record<string, string>> },
  ) => Promise<unknown>;
}

/**
 * Defines a route. Before the handler runs, the request is checked: token (401), permission (403), query and body (400), then path (404).
 */
export function defineRoute<
  At extends Endpoint,
  A extends Answer,
  Q extends QuerySchema = QuerySchema,
  B extends z.ZodType = z.ZodUndefined,
>(
  route: RouteSpec<At, Q, B, A> & { readonly handle: (input: Input<At, Q, B>) => Promise<HandlerResult<A>> },
): Route {
  // The cast is safe, because the input was parsed with the schemas in `route`.
  return { ...route, isPublic: false, handle: route.handle as Route["handle"] };
}

/** Defines a route that needs no token. Its handler therefore gets no caller. */
export function definePublicRoute<
  At extends Endpoint,
  A extends Answer,
  Q extends QuerySchema = QuerySchema,
  B extends z.ZodType = z.ZodUndefined,
>(
  route: RouteSpec<At, Q, B, A> & {
    readonly handle: (input: Omit<Input<At, Q, B>, "caller">) => Promise<HandlerResult<A>>;
  },
): Route {
  return { ...defineRoute(route), permission: null, isPublic: true };
}
