import { ADDRESS_PERMISSION, renderChannels } from "../../../channels/entity.ts";
import { invalidParameters } from "../../../http/errors.ts";
import { deleted } from "../../../http/fields.ts";
import { BLUEPRINTS, getRow } from "../../kit/references.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { appScopeOf, purgeQuerySchema, SYSTEM_APP_CONFLICT } from "../app-scope.ts";
import { planChannels } from "./blueprint-channels.ts";
import { getInstallSource } from "./install-source.ts";
import { deleteApp, findApps, installApp } from "./queries.ts";
import { app, appFilters, installedAppSchema, installSchema } from "./schema.ts";
import { appSummaries } from "./summaries.ts";

export const apps = standardResource({
  path: "/apps",
  tag: "Apps",
  name: "app",
  table: "apps",
  shape: app,
  audit: "app",
  feed: "app",
  filters: { query: appFilters, find: findApps },
  without: ["create", "delete"],
  more: (deps) => [
    appSummaries(deps),
    defineRoute({
      at: "POST /apps/install",
      operation: "installApp",
      summary: "Install an app from a blueprint",
      description:
        "Set exactly one of `artifactId` and `blueprintId`. The app and its channels are created together or not at all. The app is a copy: later changes to the blueprint reach it only when you upgrade it. An artifact of another organization must be published in a public store. If none of its pricing plans is free, your organization needs a paid order that has not expired. If its store requires approval, the approved version is installed. `channels` adds secrets and connections to the channels, so that one request makes the app ready to receive events.",
      body: installSchema,
      answer: installedAppSchema,
      reveals: ADDRESS_PERMISSION,
      creates: true,
      missing: "the blueprint, artifact, space or a connection does not exist",
      conflict: `a channel kind no longer accepts the settings in the blueprint; the artifact is not published, has no approved version, or needs a paid order; or ${ROW_LIMIT_CONFLICT}`,
      async handle({ caller, body }) {
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
        const { description, id: blueprintId } = blueprint;
        const { uid = blueprint.uid, title = blueprint.title } = body;
        const planned = await planChannels(deps, blueprint, [], caller, body.channels);
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
    }),
    defineRoute({
      at: "DELETE /apps/:appId",
      operation: "deleteApp",
      summary: "Delete an app",
      description:
        "Also deletes the app's channels and subscriptions. Published events stay until their retention ends. With `purge`, they are deleted too.",
      query: purgeQuerySchema,
      answer: deleted,
      conflict: SYSTEM_APP_CONFLICT,
      async handle({ caller, params, query: { purge } }) {
        await deleteApp(deps.db, caller, appScopeOf(caller, params), { purge, nowMs: deps.clock() });
        // The app is already deleted from PostgreSQL. If the cleanup in Redis fails, a background job retries the cleanup.
        await deps.onDeleted().catch(() => {});
        return { id: params.appId };
      },
    }),
  ],
});
