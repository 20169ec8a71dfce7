import { z } from "zod";
import { ADDRESS_PERMISSION, renderChannels } from "../../../channels/entity.ts";
import { conflict } from "../../../http/errors.ts";
import { type Resource, retryVersionConflicts } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { appParams, appScopeOf, requireOwnApp, SYSTEM_APP_CONFLICT } from "../app-scope.ts";
import { planChannels } from "./blueprint-channels.ts";
import { findUpgradeSource } from "./install-source.ts";
import { appChannels } from "./queries.ts";
import { app as appShape, installedAppSchema } from "./schema.ts";
import { upgradeApp } from "./upgrade-app.ts";

const upgradeSchema = z.strictObject({
  removeMissing: z
    .boolean()
    .describe("Whether to remove channels that a blueprint created but no longer contains.")
    .default(false),
  purge: z.boolean().describe("Whether to delete the published events of removed channels.").default(false),
});

const uids = (description: string) => z.array(z.string()).describe(description);

const upgradedAppSchema = installedAppSchema
  .extend({
    added: uids("Uids of the added channels."),
    updated: uids("Uids of the changed channels."),
    kept: uids("Uids of channels that are not in the blueprint and were left unchanged."),
    removed: uids("Uids of the removed channels."),
  })
  .meta({
    id: "UpgradedApp",
    description: "An upgraded app with its channels and a summary of the changes.",
  });

export const appUpgrades: Resource = {
  tag: "Apps",
  params: appParams,
  routes: (deps) => [
    defineRoute({
      at: "POST /apps/:appId/upgrade",
      operation: "upgradeApp",
      summary: "Upgrade an app to the current version of its blueprint",
      description:
        "Applies all changes or none. Channels with the same uid keep their id, secrets and paused state. Their title, settings and events are replaced by the blueprint's, even if you changed them. Verification is never turned off: a channel keeps its verification settings if the blueprint has none for it. New channels are added. Channels that are not in the blueprint are kept and listed. With `removeMissing`, such channels are removed if a blueprint created them, and kept if you added them. The app's title and description do not change. If the app comes from a store that requires approval, it is upgraded to the approved version.",
      body: upgradeSchema,
      answer: upgradedAppSchema,
      reveals: ADDRESS_PERMISSION,
      conflict: `the blueprint was deleted or is no longer offered; one of its channels is invalid or has another kind in the app; ${SYSTEM_APP_CONFLICT}; or ${ROW_LIMIT_CONFLICT}`,
      async handle({ caller, params, body }) {
        const { db, keyring, clock, requireRoom } = deps;
        const upgraded = await retryVersionConflicts(async () => {
          const app = await requireOwnApp(db, appScopeOf(caller, params));
          const source = await findUpgradeSource(deps, caller, app);
          if (!source)
            throw conflict("The app has no blueprint to upgrade to: it was deleted or is no longer offered.");
          const channels = await appChannels(db, app.id).execute();
          const plan = await planChannels(deps, source.blueprint, channels, caller);
          const options = { ...body, author: caller, keyring, nowMs: clock(), requireRoom };
          return upgradeApp(db, { app, source, channels }, plan, options);
        });
        // The channels are already deleted from PostgreSQL. If the cleanup in Redis fails, a background job retries the cleanup.
        if (upgraded.removed.length > 0) await deps.onDeleted().catch(() => {});
        const { app, channels, added, updated, kept, removed } = upgraded;
        const shown = await renderChannels(deps, caller, channels);
        return { ...appShape.render(app), channels: shown, added, updated, kept, removed };
      },
    }),
  ],
};
