import type { ChannelInput, SettingsDeps } from "../../../channels/settings.ts";
import { findBlueprint } from "../../../data/apps/blueprints.ts";
import type { Queryable } from "../../../data/database.ts";
import type { BlueprintChannel, BlueprintRow } from "../../../data/tables.ts";
import { deleted } from "../../../http/fields.ts";
import { pageQuerySchema } from "../../../http/page.ts";
import { invalidParameters, notFound } from "../../../http/problem.ts";
import { requireMatch, showVersion } from "../../../http/version.ts";
import type { Clock } from "../../../lib/clock.ts";
import { listOf } from "../../kit/answer.ts";
import { applyPatch } from "../../kit/merge.ts";
import { pathId } from "../../kit/params.ts";
import { type Resource, writeOnce } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { checkBlueprintChannels } from "./content.ts";
import { deleteBlueprint, insertBlueprint, listBlueprints, updateBlueprint } from "./queries.ts";
import { blueprintInputSchema, blueprintPatchSchema, blueprintSchema, renderBlueprint } from "./schema.ts";

export interface BlueprintDeps extends SettingsDeps {
  readonly db: Queryable;
  readonly clock: Clock;
}

const params = { blueprintId: pathId("bp", "blueprint") };

/** Blueprints: what an app and its channels are installed from. */
export const blueprints: Resource<BlueprintDeps> = {
  path: "/blueprints",
  tag: "Blueprints",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/",
        operation: "createBlueprint",
        summary: "Create a blueprint",
        body: blueprintInputSchema,
        answer: blueprintSchema,
        creates: true,
        versioned: true,
        conflict: "the organization has a blueprint of that uid",
      },
      async ({ caller, body, c }) => {
        const content = { ...body, uid: body.uid, channels: await requireChannels(deps, body.channels) };
        const row = await deps.db
          .transaction()
          .execute((trx) => insertBlueprint(trx, caller, content, deps.clock()));
        showVersion(c, row);
        return renderBlueprint(row);
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listBlueprints",
        summary: "List the blueprints",
        query: pageQuerySchema,
        answer: listOf(blueprintSchema),
      },
      async ({ caller, query }) => {
        const { items, total } = await listBlueprints(deps.db, caller.organizationId, query);
        return { items: items.map(renderBlueprint), total };
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/:blueprintId",
        operation: "getBlueprint",
        summary: "Get a blueprint",
        params,
        answer: blueprintSchema,
        versioned: true,
      },
      async ({ caller, params, c }) => {
        const row = await findBlueprint(deps.db, caller.organizationId, params.blueprintId);
        if (!row) throw notFound("blueprint");
        showVersion(c, row);
        return renderBlueprint(row);
      },
    ),
    defineRoute(
      {
        method: "put",
        path: "/:blueprintId",
        operation: "updateBlueprint",
        summary: "Change a blueprint",
        description: "Apps that were installed from it stay as they are until they are upgraded.",
        params,
        body: blueprintPatchSchema,
        answer: blueprintSchema,
        versioned: true,
        conflict: "another blueprint of the organization has that uid",
      },
      async ({ caller, params, body, c }) => {
        const updated = await writeOnce(async () => {
          const row = await findBlueprint(deps.db, caller.organizationId, params.blueprintId);
          if (!row) throw notFound("blueprint");
          const { uid, title, description, channels: before } = row;
          const input = applyPatch(
            blueprintInputSchema,
            { uid, title, description, channels: [...before] },
            body,
          );
          const channels = await requireChannels(deps, input.channels);
          requireMatch(c, row);
          const content = { ...input, uid: input.uid, channels };
          return deps.db
            .transaction()
            .execute((trx) => updateBlueprint(trx, caller, row, content, deps.clock()));
        });
        showVersion(c, updated);
        return renderBlueprint(updated);
      },
    ),
    defineRoute(
      {
        method: "delete",
        path: "/:blueprintId",
        operation: "deleteBlueprint",
        summary: "Delete a blueprint",
        description: "Apps that were installed from it stay; they no longer name a blueprint.",
        params,
        answer: deleted,
        versioned: true,
      },
      async ({ caller, params, c }) => {
        const id = params.blueprintId;
        const check = (row: BlueprintRow) => requireMatch(c, row);
        if (!(await deleteBlueprint(deps.db, caller, id, check, deps.clock()))) throw notFound("blueprint");
        return { id };
      },
    ),
  ],
};

/** @throws ApiError 400 that names each setting that does not fit. */
async function requireChannels(
  deps: SettingsDeps,
  channels: readonly ChannelInput[],
): Promise<readonly BlueprintChannel[]> {
  const checked = await checkBlueprintChannels(deps, channels);
  if (!checked.ok) throw invalidParameters(checked.error);
  return checked.value;
}
