import type { CheckedChannel } from "../../channels/check-channel.ts";
import { findUnfitConnection } from "../../channels/connection.ts";
import { findConnection } from "../../data/connections/connections.ts";
import type { Caller } from "../../http/context.ts";
import { invalidParameters, notFound } from "../../http/errors.ts";
import { findingUnder } from "../../lib/findings.ts";
import type { Deps } from "../kit/deps.ts";

/**
 * Checks that the channel can use the connection.
 * @param base path of the object in the request that has the field `connectionId`
 * @throws ApiError 404 if the connection does not exist; 400 if the channel cannot use it
 */
export async function requireConnection(
  { db, channelKinds }: Deps,
  { organizationId }: Pick<Caller, "organizationId">,
  { kind, config }: CheckedChannel,
  connectionId: string | null,
  base = "",
): Promise<void> {
  if (connectionId === null) return;
  const connection = await findConnection(db, organizationId, connectionId);
  if (!connection) throw notFound("connection");
  const findings = findUnfitConnection({ kind: channelKinds.get(kind), config }, connection);
  if (findings.length === 0) return;
  throw invalidParameters(base === "" ? findings : findings.map((finding) => findingUnder(base, finding)));
}
