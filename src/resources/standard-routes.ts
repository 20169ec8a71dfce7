import type { z } from "zod";
import type { Caller } from "../http/context.ts";
import { deleted, type Shown } from "../http/fields.ts";
import { type Listed, type Page, pageQuerySchema } from "../http/page.ts";
import { listOf } from "./answer.ts";
import { pathId } from "./params.ts";
import { defineRoute, type Route } from "./route.ts";

/** What most resources are called by, and what they answer. */
export interface Named<E extends z.ZodType> {
  /** Names operations and the path's parameter: `apiKey` → `createApiKey`, `:apiKeyId`. */
  readonly name: string;
  /** Default: the name and an `s`. */
  readonly plural?: string;
  /** As it is written in a sentence; default: the name. */
  readonly words?: string;
  /** How its ids begin. */
  readonly prefix: string;
  readonly entity: E;
}

interface Notes {
  readonly description?: string;
  /** When it answers 404 beyond what its path tells: its body names something too. */
  readonly missing?: string;
  readonly conflict?: string;
}
interface Called {
  readonly caller: Caller;
}
interface CalledFor extends Called {
  readonly id: string;
}
type Entity<E extends z.ZodType> = Promise<Shown<z.output<E>>>;

/** The five routes that most resources have, each from what tells it from its like and what it does. */
export interface StandardRoutes<E extends z.ZodType> {
  readonly create: <B extends z.ZodType, A extends z.ZodType = E>(
    spec: Notes & { readonly body: B; readonly answer?: A },
    run: (input: Called & { readonly body: z.output<B> }) => Entity<A>,
  ) => Route;
  readonly list: (
    run: (input: Called & { readonly page: Page }) => Promise<Listed<Shown<z.output<E>>>>,
  ) => Route;
  readonly get: (run: (input: CalledFor) => Entity<E>) => Route;
  readonly update: <B extends z.ZodType>(
    spec: Notes & { readonly body: B },
    run: (input: CalledFor & { readonly patch: z.output<B> }) => Entity<E>,
  ) => Route;
  readonly remove: (spec: Notes, run: (input: CalledFor) => Promise<unknown>) => Route;
}

export function standardRoutes<E extends z.ZodType>(named: Named<E>): StandardRoutes<E> {
  const { name, prefix, entity, plural = `${name}s`, words = name } = named;
  const one = capitalized(name);
  const param = `${name}Id`;
  const path = `/:${param}`;
  const params = { [param]: pathId(prefix, words) };
  const an = /^[aeiou]/i.test(words) ? "an" : "a";
  const idOf = (given: Readonly<Record<string, string>>): string => given[param] ?? "";
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
          answer: answering(answer ?? entity),
          creates: true,
        },
        async ({ caller, body }) => (await run({ caller, body })) as object,
      ),
    list: (run) =>
      defineRoute(
        {
          method: "get",
          path: "/",
          operation: `list${capitalized(plural)}`,
          summary: `List the ${words === name ? plural : `${words}s`}`,
          query: pageQuerySchema,
          answer: listOf(answering(entity)),
        },
        async ({ caller, query: page }) => (await run({ caller, page })) as Listed<object>,
      ),
    get: (run) =>
      defineRoute(
        {
          method: "get",
          path,
          operation: `get${one}`,
          summary: `Get ${an} ${words}`,
          params,
          answer: answering(entity),
        },
        async ({ caller, params }) => (await run({ caller, id: idOf(params) })) as object,
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
        async ({ caller, params, body: patch }) => (await run({ caller, id: idOf(params), patch })) as object,
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
        async ({ caller, params }) => {
          const id = idOf(params);
          await run({ caller, id });
          return { id };
        },
      ),
  };
}

const capitalized = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
