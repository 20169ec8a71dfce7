import { z } from "zod";
import { deleted } from "../../http/fields.ts";
import { pageQuery } from "../../http/page.ts";
import { listOf } from "./answer.ts";
import type { Fields } from "./field.ts";
import { toPatchSchema, toPatchSchemaWithId, withoutId } from "./merge.ts";
import { pathId } from "./params.ts";
import type { Resource } from "./resource.ts";
import type { Kit, Operation, ResourceSpec } from "./resource-spec.ts";
import { defineRoute, type Route } from "./route.ts";
import { ROW_LIMIT_CONFLICT } from "./row-limit.ts";
import type { Shape } from "./shape.ts";
import { standardRows } from "./standard-rows.ts";

/**
 * Creates a resource with the standard operations.
 *
 * A resource consists of a folder, a line in `resources.ts`, a migration and a test file. Each field is declared once in the
 * shape and once in the migration.
 *
 * ```ts
 * const fields = { organizationId, name: nameInput, spaceId, logoId: opaqueIdInput };
 * declare module "../../../data/tables.ts" {
 *   interface Tables { boards: TableOf<typeof fields> }
 * }
 * const board = shape({ prefix: "brd", fields, meta: { id: "Board", description: "A board." } });
 *
 * export const boards = standardResource({
 *   path: "/boards", tag: "Boards", name: "board", table: "boards", shape: board, audit: "board",
 *   references: { spaceId: SPACES },
 *   inUse: { when: "a card is on it", message: "The board has cards." },
 * });
 * ```
 *
 * 1. Fields (`field.ts`) are Zod schemas. A wrapper such as `json`, `time`, `once`, `readOnly` or `hidden` declares how the
 *    column, the requests or the response differ from the schema. `fields.ts` has common fields.
 * 2. The shape (`shape.ts`) derives request schemas, the response schema, the row type and the renderer from the fields. It is
 *    declared one folder higher when other resources also return the entity.
 * 3. This function adds `POST /`, `GET /` and `GET|PUT|DELETE /:id` with permissions, audit, references (404), conflicts (409)
 *    and documentation. Functions in `ResourceSpec` customize them. Other routes are added with `more`. A route that replaces
 *    a standard operation is also named in `without`.
 *
 * A write is one transaction. It locks the row (or its parent in `within`), looks up `references` and calls `prepare`. Then it
 * writes the row and its audit entry, calls `afterWrite` and renders the response.
 */
export function standardResource<
  F extends Fields,
  X extends z.ZodRawShape = Record<never, never>,
  Q extends z.ZodRawShape = Record<never, never>,
>(given: ResourceSpec<F, X, Q>): Resource {
  const { words = toWords(given.name) } = given;
  const spec = { ...given, words };
  const { path, tag, name, shape, within, filters, narrow, taken, inUse, notes, without = [] } = spec;
  const rows = standardRows(spec);
  const entity = shape.entity as unknown as z.ZodType<object>;
  const one = name.charAt(0).toUpperCase() + name.slice(1);
  const aThing = `${/^[aeiou]/i.test(words) ? "an" : "a"} ${words}`;
  const idParam = `${name}Id`;
  const parent = within && { [within.param]: pathId(within.parent.prefix, within.parent.words) };
  const onePath = `${path}/:${idParam}` as const;
  const idOf = (params: Readonly<Record<string, string>>): string => params[idParam] ?? "";
  const conflict = taken && { conflict: taken.when };
  const named = Object.keys(spec.references ?? {});
  const versioned = spec.version && ({ versioned: true } as const);

  return {
    tag,
    params: { ...parent, [idParam]: pathId(shape.prefix, words) },
    routes(deps) {
      const run = rows(deps);
      const fresh = narrow?.(deps);
      const input = fresh ? shape.input.extend(fresh) : shape.input;
      const content = fresh ? shape.content.extend(fresh) : shape.content;
      const operations: Readonly<Record<Operation, () => Route>> = {
        create: () =>
          defineRoute({
            at: `POST ${path}`,
            operation: `create${one}`,
            summary: `Create ${aThing}`,
            body: notes?.create?.body ?? (input as z.ZodType<object>),
            answer: entity,
            creates: true,
            ...(named.length > 0 && { missing: describeMissing(named) }),
            ...versioned,
            ...notes?.create,
            ...(spec.owner !== "id" && {
              conflict: [notes?.create?.conflict ?? taken?.when ?? [], ROW_LIMIT_CONFLICT]
                .flat()
                .join("; or "),
            }),
            handle: ({ caller, params, body, c }) => run.create(caller, params, body, c),
          }),
        list: () =>
          defineRoute({
            at: `GET ${path}`,
            operation: `list${toPlural(one)}`,
            summary: `List the ${toPlural(words)}`,
            query: z.object({ ...filters?.query, ...pageQuery }),
            answer: listOf(spec.answer ? (shape.part as z.ZodType<object>) : entity),
            ...notes?.list,
            handle: ({ caller, params, query: { limit, offset, ...filters } }) =>
              run.list(caller, params, { limit, offset }, filters),
          }),
        get: () =>
          defineRoute({
            at: `GET ${onePath}`,
            operation: `get${one}`,
            summary: `Get ${aThing}`,
            answer: entity,
            ...versioned,
            ...notes?.get,
            handle: ({ caller, params, c }) => run.get(caller, params, idOf(params), c),
          }),
        update: () =>
          defineRoute({
            at: `PUT ${onePath}`,
            operation: `update${one}`,
            summary: `Change ${aThing}`,
            body: spec.identified
              ? (toPatchSchemaWithId(content) as z.ZodType<object>)
              : toPatchSchema(content),
            answer: entity,
            ...(named.some((field) => field in shape.content.shape) && {
              missing: `the ${words}, or an entity that the change refers to, does not exist`,
            }),
            ...(taken?.of !== "new" && conflict),
            ...versioned,
            ...notes?.update,
            handle({ caller, params, body, c }) {
              const id = idOf(params);
              const patch = spec.identified ? withoutId(id, body as { id: string }) : body;
              return run.update(caller, params, id, patch, c);
            },
          }),
        delete: () =>
          defineRoute({
            at: `DELETE ${onePath}`,
            operation: `delete${one}`,
            summary: `Delete ${aThing}`,
            answer: deleted,
            ...(inUse && { conflict: inUse.when }),
            ...versioned,
            ...notes?.delete,
            async handle({ caller, params, c }) {
              const id = idOf(params);
              await run.remove(caller, params, id, c);
              return { id };
            },
          }),
      };
      const standard = (Object.keys(operations) as Operation[]).filter((one) => !without.includes(one));
      return [
        ...standard.map((one) => operations[one]()),
        ...(spec.more?.(deps, run as unknown as Kit<Shape<F, X>>) ?? []),
      ];
    },
  };
}

/** Converts camel case to words: `knowledgeBase` → `knowledge base`. */
const toWords = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
const toPlural = (words: string): string => `${words.replace(/(?<![aeiou])y$/, "ie")}s`;

function describeMissing(references: readonly string[]): string {
  const [last, ...others] = references.map((field) => `the ${toWords(field.replace(/Id$/, ""))}`).reverse();
  return `${others.length > 0 ? `${others.reverse().join(", ")} or ${last}` : last} does not exist`;
}
