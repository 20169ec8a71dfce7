import type { z } from "zod";
import type { Fields } from "./field.ts";
import { identifiedPatchOf, patchOf, withoutId } from "./merge.ts";
import type { RowDeps } from "./owned-rows.ts";
import { pathId } from "./params.ts";
import type { Resource } from "./resource.ts";
import type { Kit, Operation, ResourceSpec } from "./resource-spec.ts";
import type { Route } from "./route.ts";
import type { Shape } from "./shape.ts";
import { standardRoutes } from "./standard-routes.ts";
import { standardRows } from "./standard-rows.ts";

/**
 * How a resource is made. A resource is one folder, one line in `resources.ts`, one migration, one test file; a field of it is
 * written once in its shape and once in the migration.
 *
 *     const fields = { organizationId, name: nameInput, spaceId, logoId: opaqueIdInput };
 *     declare module "../../../data/tables.ts" {
 *       interface Tables { boards: TableOf<typeof fields> }
 *     }
 *     const board = shape({ prefix: "brd", fields, meta: { id: "Board", description: "A board." } });
 *
 *     export const boards = standardResource({
 *       path: "/boards", tag: "Boards", name: "board", table: "boards", shape: board, audit: "board",
 *       references: { spaceId: SPACES },
 *       inUse: { when: "a card is on it", message: "The board has cards." },
 *     });
 *
 * 1. Fields (`field.ts`): a Zod schema each, wrapped where column, bodies or answer are not simply its own (`json`, `time`,
 *    `once`, `kept`, `hidden`, …). Those that many have are in `fields.ts`.
 * 2. Shape (`shape.ts`): bodies, the answer's schema, row type and renderer, all from the fields. It stands one folder higher
 *    where other resources answer the entity too.
 * 3. This: `POST /`, `GET /`, `GET|PUT|DELETE /:id`, each with its permission, audit, references (404), 409s and its place in
 *    the OpenAPI document. What is particular is handed in as a function of `ResourceSpec`; what fits none of them is a
 *    route of its own under `more`, with the operation that it stands for under `without`.
 *
 * A write is one transaction: lock the row (or what it is `within`), look up `references`, `prepare`, write the row with
 * its audit entry, `afterWrite`, answer.
 */
export function standardResource<
  F extends Fields,
  X extends z.ZodRawShape = Record<never, never>,
  D extends RowDeps = RowDeps,
  Q extends z.ZodRawShape = Record<never, never>,
>(given: ResourceSpec<F, X, D, Q>): Resource<D> {
  const { words = wordsOf(given.name) } = given;
  const spec = { ...given, words };
  const { path, tag, name, plural, shape, within, filters, narrow, taken, inUse, notes, without = [] } = spec;
  const rows = standardRows(spec);
  const route = standardRoutes<z.ZodType<object>>({
    ...{ name, words, prefix: shape.prefix, entity: shape.entity as unknown as z.ZodType<object> },
    ...(plural !== undefined && { plural }),
    ...(within && { within: { [within.param]: pathId(within.parent.prefix, within.parent.words) } }),
  });
  const conflict = taken && { conflict: taken.when };
  const named = Object.keys(spec.references ?? {});
  const versioned = spec.version && ({ versioned: true } as const);

  return {
    path,
    tag,
    routes(deps) {
      const run = rows(deps);
      const fresh = narrow?.(deps);
      const bodies = fresh
        ? { input: shape.input.extend(fresh), content: shape.content.extend(fresh) }
        : shape;
      const operations: Readonly<Record<Operation, () => Route>> = {
        create: () =>
          route.create(
            {
              body: bodies.input as z.ZodType<object>,
              ...(named.length > 0 && { missing: missingOf(named) }),
              ...conflict,
              ...versioned,
              ...notes?.create,
            },
            ({ caller, within, body, c }) => run.create(caller, within, body, c),
          ),
        list: () =>
          route.list(
            ({ caller, within, page, filters }) =>
              run.list(caller, within, page, filters as z.output<z.ZodObject<Q>>),
            { ...(filters && { filters: filters.query }), ...notes?.list },
          ),
        get: () =>
          route.get(({ caller, within, id, c }) => run.get(caller, within, id, c), {
            ...versioned,
            ...notes?.get,
          }),
        update: () =>
          route.update(
            {
              body: spec.identified
                ? (identifiedPatchOf(bodies.content) as z.ZodType<object>)
                : patchOf(bodies.content),
              ...(named.some((field) => field in shape.content.shape) && {
                missing: "it, or something that the change names, is not there",
              }),
              ...(taken?.of !== "new" && conflict),
              ...versioned,
              ...notes?.update,
            },
            ({ caller, within, id, patch, c }) =>
              run.update(
                caller,
                within,
                id,
                spec.identified ? withoutId(id, patch as { id: string }) : patch,
                c,
              ),
          ),
        delete: () =>
          route.remove(
            { ...(inUse && { conflict: inUse.when }), ...versioned, ...notes?.delete },
            ({ caller, within, id, c }) => run.remove(caller, within, id, c),
          ),
      };
      const standard = (Object.keys(operations) as Operation[]).filter((one) => !without.includes(one));
      return [
        ...standard.map((one) => operations[one]()),
        ...(spec.more?.(deps, { ...run, route } as unknown as Kit<Shape<F, X>>) ?? []),
      ];
    },
  };
}

/** `knowledgeBase` → `knowledge base`. */
const wordsOf = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function missingOf(references: readonly string[]): string {
  const [last, ...others] = references.map((field) => `the ${wordsOf(field.replace(/Id$/, ""))}`).reverse();
  return `${others.length > 0 ? `${others.reverse().join(", ")} or ${last}` : last} is not there`;
}
