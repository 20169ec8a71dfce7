import { type EntityDeps, renderChannels } from "../../../channels/entity.ts";
import type { SettingsDeps } from "../../../channels/settings.ts";
import { findBlueprint } from "../../../data/apps/blueprints.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import { deleted } from "../../../http/fields.ts";
import { pageQuerySchema } from "../../../http/page.ts";
import { invalidParameters, notFound } from "../../../http/problem.ts";
import type { Clock } from "../../../lib/clock.ts";
import { listOf } from "../../kit/answer.ts";
import { applyPatch } from "../../kit/merge.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { appParams } from "../app-scope.ts";
import { planChannels } from "./blueprint-channels.ts";
import { blueprintOfArtifact } from "./offered.ts";
import { deleteApp, findApp, installApp, listApps, updateApp } from "./queries.ts";
import {
  appContentSchema,
  appPatchSchema,
  appSchema,
  installedAppSchema,
  installSchema,
  purgeQuerySchema,
  renderApp,
} from "./schema.ts";

export interface AppDeps extends SettingsDeps, EntityDeps {
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** Told after a deletion is committed: the time to clear away what it leaves on the bus. */
  readonly onDeleted: () => Promise<void>;
}

/** Apps: installs of blueprints. */
export const apps: Resource<AppDeps> = {
  path: "/apps",
  tag: "Apps",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/install",
        operation: "installApp",
        summary: "Install an app from a blueprint",
        description:
          "Exactly one of `artifactId` and `blueprintId` is given. The app is a copy: later changes of its blueprint do not reach it by themselves. Without `spaceId` it falls in the caller's default space. App and channels are made together or not at all. An artifact of another organization is one that is published in a public store; where all its pricing plans cost something, it needs a paid order of the caller's organization that has not ended.",
        body: installSchema,
        answer: installedAppSchema,
        creates: true,
        missing: "blueprint, artifact or space is not there",
        conflict:
          "a channel's kind no longer accepts what the blueprint says, the artifact is not published, or a paid order of it is needed",
      },
      async ({ caller, body }) => {
        const { organizationId, defaultSpaceId } = caller;
        const spaceId = body.spaceId ?? defaultSpaceId;
        if (spaceId === null) {
          throw invalidParameters([{ path: "spaceId", message: "is needed: the key has no default space" }]);
        }
        const blueprint =
          body.blueprintId === undefined
            ? await blueprintOfArtifact(deps, caller, body.artifactId)
            : await findBlueprint(deps.db, organizationId, body.blueprintId);
        if (!blueprint) throw notFound("blueprint");
        const { uid, title, description, id: blueprintId } = blueprint;
        const planned = await planChannels(deps, blueprint, []);
        const installed = await installApp(
          deps.db,
          caller,
          { uid, title, description, blueprintId, organizationId, spaceId },
          planned.map(({ content }) => content),
          { keyring: deps.keyring, nowMs: deps.clock() },
        );
        const channels = await renderChannels(deps, installed.channels);
        return { ...renderApp(installed.app), channels };
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listApps",
        summary: "List the apps",
        query: pageQuerySchema,
        answer: listOf(appSchema),
      },
      async ({ caller, query }) => {
        const { items, total } = await listApps(deps.db, caller.organizationId, query);
        return { items: items.map(renderApp), total };
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/:appId",
        operation: "getApp",
        summary: "Get an app",
        params: appParams,
        answer: appSchema,
      },
      async ({ caller, params }) => {
        const row = await findApp(deps.db, caller.organizationId, params.appId);
        if (!row) throw notFound("app");
        return renderApp(row);
      },
    ),
    defineRoute(
      {
        method: "put",
        path: "/:appId",
        operation: "updateApp",
        summary: "Change an app",
        params: appParams,
        body: appPatchSchema,
        answer: appSchema,
      },
      async ({ caller, params, body }) => {
        const row = await updateApp(
          deps.db,
          caller,
          params.appId,
          ({ title, description, projectId }) =>
            applyPatch(appContentSchema, { title, description, projectId }, body),
          deps.clock(),
        );
        if (!row) throw notFound("app");
        return renderApp(row);
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
      },
      async ({ caller, params, query }) => {
        const id = params.appId;
        const options = { purge: query.purge, nowMs: deps.clock() };
        if (!(await deleteApp(deps.db, caller, id, options))) throw notFound("app");
        // It is deleted, whatever becomes of this; what it leaves is noted.
        await deps.onDeleted().catch(() => {});
        return { id };
      },
    ),
  ],
};
