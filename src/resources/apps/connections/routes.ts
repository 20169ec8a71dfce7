import { z } from "zod";
import { timestamp } from "../../../http/fields.ts";
import { mergePatch } from "../../../lib/merge-patch.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { type AuthorizeDeps, beginAuthorization } from "./authorize.ts";
import {
  createConnection,
  deleteConnection,
  getConnectionRow,
  listConnections,
  updateConnection,
} from "./queries.ts";
import { requireIssuer } from "./require-issuer.ts";
import { connectionInput, connectionPatch, connectionSchema, renderConnection } from "./schema.ts";
import { type TryDeps, triedSchema, tryConnection, tryInput } from "./test-connection.ts";

export type ConnectionsDeps = AuthorizeDeps & TryDeps;

const connection = standardRoutes({ name: "connection", prefix: "con", entity: connectionSchema });
const params = { connectionId: pathId("con", "connection") };

/** Connections: credentials for other servers. */
export const connections: Resource<ConnectionsDeps> = {
  path: "/connections",
  tag: "Connections",
  routes: (deps) => [
    connection.create(
      {
        body: connectionInput,
        description: "Secret settings are written and never answered.",
      },
      async ({ caller, body }) => {
        await requireIssuer(body, deps.issuerFetch);
        return createConnection(deps, caller, body);
      },
    ),
    connection.list(({ caller, page }) => listConnections(deps, caller, page)),
    connection.get(async ({ caller, id }) => renderConnection(await getConnectionRow(deps.db, caller, id))),
    connection.update(
      {
        body: connectionPatch,
        description:
          "In force at once. Secrets that are not sent are kept, but where the patch adds an allowed origin, or sends them to another issuer, all of them must be given again; tokens that a person's authorization brought then end.",
      },
      async ({ caller, id, patch }) => {
        const { kind, config } = await getConnectionRow(deps.db, caller, id);
        if (patch.config !== undefined)
          await requireIssuer(mergePatch({ kind, config }, { config: patch.config }), deps.issuerFetch);
        return updateConnection(deps, caller, id, patch);
      },
    ),
    connection.remove(
      {
        conflict: "a channel, a subscription or its handler uses it: the message names them",
        description: "Its secrets and tokens go with it.",
      },
      ({ caller, id }) => deleteConnection(deps, caller, id),
    ),
    defineRoute(
      {
        method: "post",
        path: "/:connectionId/test",
        operation: "testConnection",
        summary: "Try a connection",
        description: "Uses the credentials once, now. What the call answers is not told beyond its status.",
        params,
        body: tryInput,
        answer: triedSchema,
      },
      ({ caller, params, body, c }) =>
        tryConnection(deps, caller, params.connectionId, { url: body.url, signal: c.req.raw.signal }),
    ),
    defineRoute(
      {
        method: "get",
        path: "/:connectionId/authorize",
        operation: "authorizeConnection",
        summary: "Begin an authorization by a person",
        description:
          "Of grant authorizationCode. Answers where to send the person, who must be one whom the caller trusts; the issuer sends them back to Inlet, which then has its tokens. The issuer must know the redirect URI `{base_url}/connections/oauth/callback`.",
        params,
        answer: z
          .object({ url: z.url(), expiresAt: timestamp })
          .meta({ id: "ConnectionAuthorization", description: "Where a person authorizes a connection." }),
        permission: "connections.write",
        conflict: "the connection has no such grant, or its issuer cannot be asked",
      },
      ({ caller, params }) => beginAuthorization(deps, caller, params.connectionId),
    ),
  ],
};
