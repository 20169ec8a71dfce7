import { z } from "zod";
import { ADDRESS_PERMISSION, renderChannels } from "../../../channels/entity.ts";
import { conflict } from "../../../http/problem.ts";
import { type Resource, retryVersionConflicts } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { appParams, appScopeOf, requireOwnApp } from "../app-scope.ts";
import { planChannels } from "./blueprint-channels.ts";
import { findUpgradeSource } from "./offered.ts";
import { appChannels } from "./queries.ts";
import type { AppDeps } from "./routes.ts";
import { app as appShape, installedAppSchema } from "./schema.ts";
import { upgradeApp } from "./upgrade-app.ts";

const upgradeSchema = z.strictObject({
  removeMissing: z
    .boolean()
    .default(false)
    .describe("remove the channels that came from the blueprint and are no longer in it"),
  purge: z.boolean().default(false).describe("what removed channels have published goes with them"),
});

const uids = (description: string) => z.array(z.string()).describe(description);

const upgradedAppSchema = installedAppSchema
  .extend({
    added: uids("uids of channels that are new"),
    updated: uids("uids of channels that were changed"),
    kept: uids("uids of channels that are not in the blueprint and were left as they are"),
    removed: uids("uids of channels that were removed"),
  })
  .meta({ id: "UpgradedApp", description: "An app with all its channels, and what its upgrade did." });

/** Upgrades of apps. */
export const appUpgrades: Resource<AppDeps> = {
  path: "/apps",
  tag: "Apps",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/:appId/upgrade",
        operation: "upgradeApp",
        summary: "Bring an app to the present state of its blueprint",
        description:
          "All or nothing. Channels of the same uid keep id, address and secrets and get title, settings and events of the blueprint, whatever was changed on them by hand, but that a channel that verifies its senders is not opened by a blueprint whose channel does not; a paused one stays paused. New ones are added. Channels that are not in the blueprint are kept, and listed; with `removeMissing` those go that came from it, never those added by hand. Title and description of the app stay. One that came by an artifact of a store that requires approval is brought to the version that the store has approved.",
        params: appParams,
        body: upgradeSchema,
        answer: upgradedAppSchema,
        reveals: ADDRESS_PERMISSION,
        conflict: `the app has no blueprint (any more), or one of another organization that no artifact offers to the caller's now, a channel of the same uid is of another kind, or a kind no longer accepts what the blueprint says; it is the system app; or ${ROW_LIMIT_CONFLICT}`,
      },
      async ({ caller, params, body }) => {
        const { db, keyring, clock, requireRoom } = deps;
        const upgraded = await retryVersionConflicts(async () => {
          const app = await requireOwnApp(db, appScopeOf(caller, params));
          const source = await findUpgradeSource(deps, caller, app);
          if (!source) throw conflict("The app has no blueprint to be upgraded to.");
          const channels = await appChannels(db, app.id).execute();
          const plan = await planChannels(deps, source.blueprint, channels, caller.organizationId);
          const options = { ...body, author: caller, keyring, nowMs: clock(), requireRoom };
          return upgradeApp(db, { app, source, channels }, plan, options);
        });
        // They are deleted, whatever becomes of this; what they leave is noted.
        if (upgraded.removed.length > 0) await deps.onDeleted().catch(() => {});
        const { app, channels, added, updated, kept, removed } = upgraded;
        const shown = await renderChannels(deps, caller, channels);
        return { ...appShape.render(app), channels: shown, added, updated, kept, removed };
      },
    ),
  ],
};
