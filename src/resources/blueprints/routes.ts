import { Hono } from "hono";
import {
  type ChannelInput,
  checkSettings,
  findSecretSettings,
  type SettingsDeps,
} from "../../channels/settings.ts";
import type { Queryable } from "../../data/database.ts";
import type { BlueprintChannel } from "../../data/tables.ts";
import type { ApiEnv } from "../../http/context.ts";
import { findingUnder } from "../../http/findings.ts";
import { answerList, pageQuerySchema } from "../../http/page.ts";
import { invalidParameters, notFound } from "../../http/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Finding } from "../../lib/errors.ts";
import { mergePatch } from "../../lib/merge-patch.ts";
import { parseBody, parseInput, parseQuery, type Resource, writeOnce } from "../resource.ts";
import {
  deleteBlueprint,
  findBlueprint,
  insertBlueprint,
  listBlueprints,
  updateBlueprint,
} from "./queries.ts";
import { blueprintInputSchema, blueprintPatchSchema, renderBlueprint } from "./schema.ts";

export interface BlueprintDeps extends SettingsDeps {
  readonly db: Queryable;
  readonly clock: Clock;
}

/** Blueprints: what an app and its channels are installed from. */
export const blueprints: Resource<BlueprintDeps> = {
  path: "/blueprints",
  create(deps) {
    const { db, clock } = deps;
    const routes = new Hono<ApiEnv>();

    routes.post("/", async (c) => {
      const { organizationId } = c.get("caller");
      const input = await parseBody(c, blueprintInputSchema);
      const channels = await checkChannels(deps, input.channels);
      const content = { ...input, uid: input.uid, channels };
      return c.json(renderBlueprint(await insertBlueprint(db, organizationId, content, clock())));
    });

    routes.get("/", async (c) => {
      const page = parseQuery(c, pageQuerySchema);
      const { items, total } = await listBlueprints(db, c.get("caller").organizationId, page);
      return answerList(c, { items: items.map(renderBlueprint), total });
    });

    routes.get("/:blueprintId", async (c) => {
      const row = await findBlueprint(db, c.get("caller").organizationId, c.req.param("blueprintId"));
      if (!row) throw notFound("blueprint");
      return c.json(renderBlueprint(row));
    });

    routes.put("/:blueprintId", async (c) => {
      const patch = await parseBody(c, blueprintPatchSchema);
      const updated = await writeOnce(async () => {
        const row = await findBlueprint(db, c.get("caller").organizationId, c.req.param("blueprintId"));
        if (!row) throw notFound("blueprint");
        const { uid, title, description, channels: before } = row;
        const merged = mergePatch({ uid, title, description, channels: before }, patch);
        const input = parseInput(blueprintInputSchema, merged);
        const channels = await checkChannels(deps, input.channels);
        return updateBlueprint(db, row, { ...input, uid: input.uid, channels }, clock());
      });
      return c.json(renderBlueprint(updated));
    });

    routes.delete("/:blueprintId", async (c) => {
      const id = c.req.param("blueprintId");
      if (!(await deleteBlueprint(db, c.get("caller").organizationId, id))) throw notFound("blueprint");
      return c.json({ id });
    });

    return routes;
  },
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
