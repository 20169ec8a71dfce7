import type { Context } from "hono";
import { z } from "zod";
import type { ApiEnv, Caller } from "../../http/context.ts";
import { deleted, type Shown } from "../../http/fields.ts";
import { type Listed, type Page, pageQuery, pageQuerySchema } from "../../http/page.ts";
import { type Answered, listOf } from "./answer.ts";
import { type ParamSchemas, pathId } from "./params.ts";
import { defineRoute, type QuerySchema, type Route, type RouteSpec } from "./route.ts";

/** What most resources are called by, and what they answer. */
export interface Named<E extends z.ZodType, W extends ParamSchemas = NoParams> {
  /** Names operations and the path's parameter: `apiKey` → `createApiKey`, `:apiKeyId`. */
  readonly name: string;
  /** Default: the name's regular one. */
  readonly plural?: string;
  /** As it is written in a sentence; default: the name. */
  readonly words?: string;
  /** How its ids begin. */
  readonly prefix: string;
  readonly entity: E;
  /** The parameters that stand in the resource's own path: of what these are part. */
  readonly within?: W;
}

type NoParams = Record<never, never>;
type Notes = Pick<
  RouteSpec<ParamSchemas, QuerySchema, z.ZodType, z.ZodType>,
  "description" | "missing" | "conflict" | "confined" | "versioned"
>;
interface Called<W extends ParamSchemas> {
  readonly caller: Caller;
  readonly c: Context<ApiEnv>;
  readonly within: { readonly [K in keyof W]: string };
}
interface CalledFor<W extends ParamSchemas> extends Called<W> {
  readonly id: string;
}
type Entity<E extends z.ZodType> = Promise<Answered<E>>;

/** The five routes that most resources have, each from what tells it from its like and what it does. */
export interface StandardRoutes<E extends z.ZodType, W extends ParamSchemas = NoParams> {
  readonly create: <B extends z.ZodType, A extends z.ZodType = E>(
    spec: Notes & { readonly body: B; readonly answer?: A },
    run: (input: Called<W> & { readonly body: z.output<B> }) => Entity<A>,
  ) => Route;
  readonly list: (
    run: (
      input: Called<W> & { readonly page: Page; readonly filters: Readonly<Record<string, unknown>> },
    ) => Promise<Listed<Shown<z.output<E>>>>,
    spec?: Notes & {
      /** What the query may hold beside the page. */
      readonly filters?: z.ZodRawShape;
    },
  ) => Route;
  readonly get: (run: (input: CalledFor<W>) => Entity<E>, spec?: Notes) => Route;
  readonly update: <B extends z.ZodType>(
    spec: Notes & { readonly body: B },
    run: (input: CalledFor<W> & { readonly patch: z.output<B> }) => Entity<E>,
  ) => Route;
  readonly remove: (spec: Notes, run: (input: CalledFor<W>) => Promise<unknown>) => Route;
}

export function standardRoutes<E extends z.ZodType, W extends ParamSchemas = NoParams>(
  named: Named<E, W>,
): StandardRoutes<E, W> {
  const { name, prefix, entity, plural = pluralOf(name), words = name, within = {} } = named;
  const one = capitalized(name);
  const param = `${name}Id`;
  const path = `/:${param}`;
  const params = { ...within, [param]: pathId(prefix, words) };
  const an = /^[aeiou]/i.test(words) ? "an" : "a";
  type Given = Readonly<Record<string, string>>;
  const idOf = (given: Given): string => given[param] ?? "";
  const withinOf = (given: Given) => given as Called<W>["within"];
  // An answer's type is known to whoever hands in the handler; in here any schema is like another.
  const answering = <A extends z.ZodType>(answer: A) => answer as unknown as z.ZodType<object>;

  return {
    create: ({ answer, ...spec }, run) =>
      defineRoute(
        {
          ...spec,
          method: "post",
          path: "/",
          operation: `create${one}`,
          summary: `Create ${an} ${words}`,
          ...(named.within && { params: named.within }),
          answer: answering(answer ?? entity),
          creates: true,
        },
        async ({ caller, c, params, body }) =>
          (await run({ caller, c, within: withinOf(params), body })) as object,
      ),
    list: (run, { filters, ...spec } = {}) =>
      defineRoute(
        {
          ...spec,
          method: "get",
          path: "/",
          operation: `list${capitalized(plural)}`,
          summary: `List the ${words === name ? plural : pluralOf(words)}`,
          ...(named.within && { params: named.within }),
          query: filters ? z.object({ ...filters, ...pageQuery }) : pageQuerySchema,
          answer: listOf(answering(entity)),
        },
        async ({ caller, c, params, query: { limit, offset, ...filters } }) => {
          const page = { limit, offset };
          return (await run({ caller, c, within: withinOf(params), page, filters })) as Listed<object>;
        },
      ),
    get: (run, spec) =>
      defineRoute(
        {
          ...spec,
          method: "get",
          path,
          operation: `get${one}`,
          summary: `Get ${an} ${words}`,
          params,
          answer: answering(entity),
        },
        async ({ caller, c, params }) =>
          (await run({ caller, c, within: withinOf(params), id: idOf(params) })) as object,
      ),
    update: (spec, run) =>
      defineRoute(
        {
          ...spec,
          method: "put",
          path,
          operation: `update${one}`,
          summary: `Change ${an} ${words}`,
          params,
          answer: answering(entity),
        },
        async ({ caller, c, params, body: patch }) =>
          (await run({ caller, c, within: withinOf(params), id: idOf(params), patch })) as object,
      ),
    remove: (spec, run) =>
      defineRoute(
        {
          ...spec,
          method: "delete",
          path,
          operation: `delete${one}`,
          summary: `Delete ${an} ${words}`,
          params,
          answer: deleted,
        },
        async ({ caller, c, params }) => {
          const id = idOf(params);
          await run({ caller, c, within: withinOf(params), id });
          return { id };
        },
      ),
  };
}

const pluralOf = (words: string): string => `${words.replace(/(?<![aeiou])y$/, "ie")}s`;
const capitalized = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
