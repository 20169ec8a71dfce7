import { sql } from "kysely";
import type { Definition } from "../../event/definition.ts";
import type { Queryable } from "../database.ts";

/** A channel with at least one definition that is open to agents. */
export interface AgentChannel {
  readonly appId: string;
  readonly appUid: string;
  readonly channelUid: string;
  /** All definitions of the channel. */
  readonly events: readonly Definition[];
  /** Number of the organization's apps with the same uid. */
  readonly sameUid: number;
}

export const listAgentChannels = (
  db: Queryable,
  organizationId: string,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<readonly AgentChannel[]> =>
  selectChannels(db, organizationId)
    .orderBy("apps.createdAt")
    .orderBy("channels.number")
    .limit(limit)
    .offset(offset)
    .execute();

/** Finds the channels to which the name of an event type may refer: `<app id or uid>.<channel uid>.<type>`. */
export function findAgentChannels(
  db: Queryable,
  organizationId: string,
  name: string,
): Promise<readonly AgentChannel[]> {
  const startsWith = (owner: "apps.id" | "apps.uid") =>
    sql<boolean>`starts_with(${name}, ${sql.ref(owner)} || '.' || channels.uid || '.')`;
  return selectChannels(db, organizationId)
    .where((eb) => eb.or([startsWith("apps.id"), startsWith("apps.uid")]))
    .execute();
}

const selectChannels = (db: Queryable, organizationId: string) =>
  db
    .selectFrom("apps")
    .innerJoin("channels", "channels.appId", "apps.id")
    .select(["apps.id as appId", "apps.uid as appUid", "channels.uid as channelUid", "channels.events"])
    .select(
      sql<number>`(SELECT count(*)::int FROM apps AS other
        WHERE other.organization_id = ${organizationId} AND other.uid = apps.uid)`.as("sameUid"),
    )
    .where("apps.organizationId", "=", organizationId)
    .where(sql<boolean>`channels.events::jsonb @> '[{"agents": true}]'`);
