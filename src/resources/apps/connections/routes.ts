import { z } from "zod";
import { sealConnectionSecrets } from "../../../data/connections/connections.ts";
import { timestamp } from "../../../http/fields.ts";
import { mergePatch } from "../../../lib/json/merge-patch.ts";
import { CONNECTIONS, getRow } from "../../kit/references.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { beginAuthorization } from "./authorize.ts";
import { computeGrantChange, splitSecrets } from "./changes.ts";
import { requireUnpadded, requireUnused, updateConnection } from "./queries.ts";
import { requireIssuer } from "./require-issuer.ts";
import { connection, connectionInput, connectionPatch } from "./schema.ts";
import { connectionTestInput, connectionTestSchema, testConnection } from "./test-connection.ts";

export const connections = standardResource({
  path: "/connections",
  tag: "Connections",
  name: "connection",
  table: "connections",
  shape: connection,
  audit: "connection",
  feed: "connection",
  async readBody(body, { issuerFetch }) {
    await requireIssuer(body, issuerFetch);
    return {};
  },
  async prepare({ deps: { keyring }, id, values }) {
    const { config, secrets } = splitSecrets(values);
    requireUnpadded(secrets);
    const sealedSecrets = sealConnectionSecrets(keyring, id, secrets);
    return { config, sealedSecrets, state: computeGrantChange(values).state };
  },
  async remove({ trx, caller, row: { id }, remove }) {
    await requireUnused(trx, caller, id);
    await remove();
  },
  notes: {
    create: { body: connectionInput, description: "Secret settings are never returned." },
    delete: {
      conflict: "a channel, subscription or handler uses the connection; the message names them",
      description: "Also deletes its secrets and tokens.",
    },
  },
  without: ["update"],
  more: (deps) => [
    defineRoute({
      at: "PUT /connections/:connectionId",
      operation: "updateConnection",
      summary: "Change a connection",
      description:
        "Takes effect at once. Secrets that you do not send are kept. If you add an allowed origin or change the issuer, you must send all secrets again. This also deletes tokens that a person authorized, and the person must authorize the connection again.",
      body: connectionPatch,
      answer: connection.entity,
      async handle({ caller, params: { connectionId }, body }) {
        const { kind, config } = await getRow(deps.db, caller, CONNECTIONS, connectionId);
        if (body.config !== undefined)
          await requireIssuer(mergePatch({ kind, config }, { config: body.config }), deps.issuerFetch);
        return updateConnection(deps, caller, connectionId, body);
      },
    }),
    defineRoute({
      at: "POST /connections/:connectionId/test",
      operation: "testConnection",
      summary: "Test a connection",
      description:
        "Uses the credentials for one request. Returns only the status of the response, not its content.",
      body: connectionTestInput,
      answer: connectionTestSchema,
      handle: ({ caller, params, body, c }) =>
        testConnection(deps, caller, params.connectionId, { url: body.url, signal: c.req.raw.signal }),
    }),
    defineRoute({
      at: "GET /connections/:connectionId/authorize",
      operation: "authorizeConnection",
      summary: "Start an authorization by a person",
      description:
        "For connections with the grant `authorizationCode`. Returns the URL to open in the browser of a person you trust. The issuer then redirects the browser to Inlet, which obtains the tokens. Register the redirect URI `{base_url}/connections/oauth/callback` with the issuer.",
      answer: z.object({ url: z.url(), expiresAt: timestamp }).meta({
        id: "ConnectionAuthorization",
        description: "URL at which a person authorizes a connection.",
      }),
      permission: "connections.write",
      conflict:
        "the connection's grant is not `authorizationCode`, or its issuer's endpoints cannot be determined",
      handle: ({ caller, params }) => beginAuthorization(deps, caller, params.connectionId),
    }),
  ],
});
