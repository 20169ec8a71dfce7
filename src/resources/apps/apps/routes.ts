import { ADDRESS_PERMISSION, type EntityDeps, renderChannels } from "../../../channels/entity.ts";
import type { SettingsDeps } from "../../../channels/settings.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import { deleted } from "../../../http/fields.ts";
import { invalidParameters } from "../../../http/problem.ts";
import type { Clock } from "../../../lib/clock.ts";
import { BLUEPRINTS, getRow } from "../../kit/references.ts";
import type { RowDeps } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { appParams, appScopeOf, IS_SYSTEM, purgeQuerySchema } from "../app-scope.ts";
import { planChannels } from "./blueprint-channels.ts";
import { blueprintOfArtifact } from "./offered.ts";
import { deleteApp, installApp } from "./queries.ts";
import { app, installedAppSchema, installSchema } from "./schema.ts";

export interface AppDeps extends SettingsDeps, EntityDeps, RowDeps {
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** Told after a deletion is committed: the time to clear away what it leaves on the bus. */
  readonly onDeleted: () => Promise<void>;
}

/** Apps: installs of blueprints. */
export const apps = standardResource({
  path: "/apps",
  tag: "Apps",
  name: "app",
  table: "apps",
  shape: app,
  audit: "app",
  feed: "app",
  without: ["create", "delete"],
  more: (deps: AppDeps) => [
    defineRoute(
      {
        method: "post",
        path: "/install",
        operation: "installApp",
        summary: "Install an app from a blueprint",
        description:
          "Exactly one of `artifactId` and `blueprintId` is given. The app is a copy: later changes of its blueprint do not reach it by themselves. Without `spaceId` it falls in the caller's default space. App and channels are made together or not at all. An artifact of another organization is one that is published in a public store; where all its pricing plans cost something, it needs a paid order of the caller's organization that has not ended. Where its store requires approval, the version that the store has approved is installed.",
        body: installSchema,
        answer: installedAppSchema,
        reveals: ADDRESS_PERMISSION,
        creates: true,
        missing: "blueprint, artifact or space is not there",
        conflict: `a channel's kind no longer accepts what the blueprint says, the artifact is not published, its store has approved no version, or a paid order of it is needed; or ${ROW_LIMIT_CONFLICT}`,
      },
      async ({ caller, body }) => {
        const { organizationId, defaultSpaceId } = caller;
        const spaceId = body.spaceId ?? defaultSpaceId;
        if (spaceId === null) {
          throw invalidParameters([{ path: "spaceId", message: "is needed: the key has no default space" }]);
        }
        const { blueprint, artifactId } =
          body.blueprintId === undefined
            ? await blueprintOfArtifact(deps, caller, body.artifactId)
            : {
                blueprint: await getRow(deps.db, caller, BLUEPRINTS, body.blueprintId),
                artifactId: null,
              };
        const { uid, title, description, id: blueprintId } = blueprint;
        const planned = await planChannels(deps, blueprint, [], caller.organizationId);
        const installed = await installApp(
          deps.db,
          caller,
          { uid, title, description, blueprintId, artifactId, organizationId, spaceId },
          planned.map(({ content }) => content),
          { keyring: deps.keyring, nowMs: deps.clock(), requireRoom: deps.requireRoom },
        );
        const channels = await renderChannels(deps, caller, installed.channels);
        return { ...app.render(installed.app), channels };
      },
    ),
    defineRoute(
      {
        method: "delete",
        path: "/:appId",
        operation: "deleteApp",
        summary: "Delete an app",
        description:
          "With its channels and subscriptions. What its channels have published stays until its retention ends, or goes with it (`purge`).",
        params: appParams,
        query: purgeQuerySchema,
        answer: deleted,
        conflict: IS_SYSTEM,
      },
      async ({ caller, params, query: { purge } }) => {
        await deleteApp(deps.db, caller, appScopeOf(caller, params), { purge, nowMs: deps.clock() });
        // It is deleted, whatever becomes of this; what it leaves is noted.
        await deps.onDeleted().catch(() => {});
        return { id: params.appId };
      },
    ),
  ],
});
