import { z } from "zod";
import { sealConnectionSecrets } from "../../../data/connections/connections.ts";
import { timestamp } from "../../../http/fields.ts";
import { mergePatch } from "../../../lib/json/merge-patch.ts";
import { pathId } from "../../kit/params.ts";
import { CONNECTIONS, getRow } from "../../kit/references.ts";
import type { RowDeps } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { type AuthorizeDeps, beginAuthorization } from "./authorize.ts";
import { grantChange, splitSecrets } from "./changes.ts";
import { refuseUsed, updateConnection } from "./queries.ts";
import { requireIssuer } from "./require-issuer.ts";
import { connection, connectionInput, connectionPatch } from "./schema.ts";
import { type TryDeps, triedSchema, tryConnection, tryInput } from "./test-connection.ts";

export type ConnectionsDeps = AuthorizeDeps & TryDeps & RowDeps;

const params = { connectionId: pathId("con", "connection") };

/** Connections: credentials for other servers. */
export const connections = standardResource({
  path: "/connections",
  tag: "Connections",
  name: "connection",
  table: "connections",
  shape: connection,
  audit: "connection",
  feed: "connection",
  async readBody(body, { issuerFetch }: ConnectionsDeps) {
    await requireIssuer(body, issuerFetch);
    return {};
  },
  async prepare({ deps: { keyring }, id, values }) {
    const { config, secrets } = splitSecrets(values);
    const sealedSecrets = sealConnectionSecrets(keyring, id, secrets);
    return { config, sealedSecrets, state: grantChange(values).state };
  },
  async remove({ trx, caller, row: { id }, remove }) {
    await refuseUsed(trx, caller, id);
    await remove();
  },
  notes: {
    create: { body: connectionInput, description: "Secret settings are written and never answered." },
    delete: {
      conflict: "a channel, a subscription or its handler uses it: the message names them",
      description: "Its secrets and tokens go with it.",
    },
  },
  without: ["update"],
  more: (deps) => [
    defineRoute(
      {
        method: "put",
        path: "/:connectionId",
        operation: "updateConnection",
        summary: "Change a connection",
        description:
          "In force at once. Secrets that are not sent are kept, but where the patch adds an allowed origin, or sends them to another issuer, all of them must be given again; tokens that a person's authorization brought then end.",
        params,
        body: connectionPatch,
        answer: connection.entity,
      },
      async ({ caller, params: { connectionId }, body }) => {
        const { kind, config } = await getRow(deps.db, caller, CONNECTIONS, connectionId);
        if (body.config !== undefined)
          await requireIssuer(mergePatch({ kind, config }, { config: body.config }), deps.issuerFetch);
        return updateConnection(deps, caller, connectionId, body);
      },
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
});
