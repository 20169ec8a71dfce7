import type { CheckChannelDeps } from "../../../channels/check-channel.ts";
import { ADDRESS_PERMISSION, type EntityDeps, renderChannels } from "../../../channels/entity.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import { invalidParameters } from "../../../http/errors.ts";
import { deleted } from "../../../http/fields.ts";
import type { Clock } from "../../../lib/clock.ts";
import { BLUEPRINTS, getRow } from "../../kit/references.ts";
import type { RowDeps } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { appParams, appScopeOf, purgeQuerySchema, SYSTEM_APP_CONFLICT } from "../app-scope.ts";
import { planChannels } from "./blueprint-channels.ts";
import { getInstallSource } from "./install-source.ts";
import { deleteApp, installApp } from "./queries.ts";
import { app, installedAppSchema, installSchema } from "./schema.ts";

export interface AppDeps extends CheckChannelDeps, EntityDeps, RowDeps {
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** Called after an app was deleted from PostgreSQL, to delete the app's data from Redis. */
  readonly onDeleted: () => Promise<void>;
}

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
          "Set exactly one of `artifactId` and `blueprintId`. The app and its channels are created together or not at all. The app is a copy: later changes to the blueprint reach it only when you upgrade it. An artifact of another organization must be published in a public store. If none of its pricing plans is free, your organization needs a paid order that has not expired. If its store requires approval, the approved version is installed.",
        body: installSchema,
        answer: installedAppSchema,
        reveals: ADDRESS_PERMISSION,
        creates: true,
        missing: "the blueprint, artifact or space does not exist",
        conflict: `a channel kind no longer accepts the settings in the blueprint; the artifact is not published, has no approved version, or needs a paid order; or ${ROW_LIMIT_CONFLICT}`,
      },
      async ({ caller, body }) => {
        const { organizationId, defaultSpaceId } = caller;
        const spaceId = body.spaceId ?? defaultSpaceId;
        if (spaceId === null) {
          const message = "is required, because the API key has no default space";
          throw invalidParameters([{ path: "spaceId", message }]);
        }
        const { blueprint, artifactId } =
          body.blueprintId === undefined
            ? await getInstallSource(deps, caller, body.artifactId)
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
          "Also deletes the app's channels and subscriptions. Published events stay until their retention ends. With `purge`, they are deleted too.",
        params: appParams,
        query: purgeQuerySchema,
        answer: deleted,
        conflict: SYSTEM_APP_CONFLICT,
      },
      async ({ caller, params, query: { purge } }) => {
        await deleteApp(deps.db, caller, appScopeOf(caller, params), { purge, nowMs: deps.clock() });
        // The app is already deleted from PostgreSQL. If the cleanup in Redis fails, a background job retries the cleanup.
        await deps.onDeleted().catch(() => {});
        return { id: params.appId };
      },
    ),
  ],
});
