import {
  type ChannelInput,
  checkSettings,
  findSecretSettings,
  type SettingsDeps,
} from "../../channels/settings.ts";
import type { Queryable } from "../../data/database.ts";
import type { BlueprintChannel } from "../../data/tables.ts";
import { deleted } from "../../http/fields.ts";
import { findingUnder } from "../../http/findings.ts";
import { pageQuerySchema } from "../../http/page.ts";
import { invalidParameters, notFound } from "../../http/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Finding } from "../../lib/errors.ts";
import { mergePatch } from "../../lib/merge-patch.ts";
import { listOf } from "../answer.ts";
import { pathId } from "../params.ts";
import { parseInput, type Resource, writeOnce } from "../resource.ts";
import { defineRoute } from "../route.ts";
import {
  deleteBlueprint,
  findBlueprint,
  insertBlueprint,
  listBlueprints,
  updateBlueprint,
} from "./queries.ts";
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
        conflict: "the organization has a blueprint of that uid",
      },
      async ({ caller, body }) => {
        const content = { ...body, uid: body.uid, channels: await checkChannels(deps, body.channels) };
        return renderBlueprint(await insertBlueprint(deps.db, caller.organizationId, content, deps.clock()));
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
      },
      async ({ caller, params }) => {
        const row = await findBlueprint(deps.db, caller.organizationId, params.blueprintId);
        if (!row) throw notFound("blueprint");
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
        conflict: "another blueprint of the organization has that uid",
      },
      async ({ caller, params, body }) => {
        const updated = await writeOnce(async () => {
          const row = await findBlueprint(deps.db, caller.organizationId, params.blueprintId);
          if (!row) throw notFound("blueprint");
          const { uid, title, description, channels: before } = row;
          const merged = mergePatch({ uid, title, description, channels: before }, body);
          const input = parseInput(blueprintInputSchema, merged);
          const channels = await checkChannels(deps, input.channels);
          return updateBlueprint(deps.db, row, { ...input, uid: input.uid, channels }, deps.clock());
        });
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
      },
      async ({ caller, params }) => {
        const id = params.blueprintId;
        if (!(await deleteBlueprint(deps.db, caller.organizationId, id))) throw notFound("blueprint");
        return { id };
      },
    ),
  ],
};

/** The channels with defaults filled in. @throws ApiError 400 that names each setting that does not fit. */
async function checkChannels(
  deps: SettingsDeps,
  channels: readonly ChannelInput[],
): Promise<readonly BlueprintChannel[]> {
  const findings: Finding[] = [];
  const checked: BlueprintChannel[] = [];
  for (const [index, channel] of channels.entries()) {
    const secrets = findSecretSettings(deps, channel);
    const result = await checkSettings(deps, channel);
    const found = result.ok ? secrets : [...secrets, ...result.error];
    findings.push(...found.map((finding) => findingUnder(`channels[${index}]`, finding)));
    if (result.ok) {
      const { kind, config, events } = result.value;
      checked.push({ uid: channel.uid, kind, title: channel.title, config, events });
    }
  }
  if (findings.length > 0) throw invalidParameters(findings);
  return checked;
}
