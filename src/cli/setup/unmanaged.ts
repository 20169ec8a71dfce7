import { sql } from "kysely";
import type { Trx } from "../../data/database.ts";
import type { WantedOrganization } from "./check.ts";
import type { Organization, Step } from "./plan.ts";

const SHOWN = 20;

/**
 * Lists the organization's objects that the config file does not declare, which stay unchanged. A long list is cut off and ends
 * with a count.
 */
export async function findUnmanaged(
  trx: Trx,
  organization: Organization,
  { spaces, blueprints, apps }: WantedOrganization,
): Promise<readonly Step[]> {
  const declaredApps = apps.map(({ space, uid }) => `${space}/${uid}`);
  const declaredChannels = apps.flatMap(({ space, uid, channels }) =>
    channels.map((channel) => `${space}/${uid}/${channel.uid}`),
  );
  const declaredBlueprints = blueprints.map(({ uid }) => uid);
  const of = organization.id;
  const objects = {
    space: [spaces, sql`SELECT name FROM spaces WHERE organization_id = ${of}`],
    blueprint: [declaredBlueprints, sql`SELECT uid AS name FROM blueprints WHERE organization_id = ${of}`],
    app: [
      declaredApps,
      sql`SELECT spaces.name || '/' || apps.uid AS name FROM apps JOIN spaces ON spaces.id = space_id
          WHERE apps.organization_id = ${of}`,
    ],
    channel: [
      declaredChannels,
      sql`SELECT spaces.name || '/' || apps.uid || '/' || channels.uid AS name
          FROM channels JOIN apps ON apps.id = app_id JOIN spaces ON spaces.id = space_id
          WHERE channels.organization_id = ${of}
            AND spaces.name || '/' || apps.uid = ANY(${declaredApps})`,
    ],
  } as const;
  const steps: Step[] = [];
  for (const [kind, [declared, all]] of Object.entries(objects)) {
    const { rows } = await sql<{ name: string; total: number }>`
      SELECT name, count(*) OVER () AS total FROM (${all}) AS found
      WHERE name <> ALL(${[...declared]}) ORDER BY name LIMIT ${SHOWN}`.execute(trx);
    const called = rows.map(({ name }) => `${kind} ${name}`);
    const more = (rows[0]?.total ?? 0) - rows.length;
    if (more > 0) called.push(`${more} more of the kind ${kind}`);
    for (const one of called) steps.push({ action: "unmanaged", object: `${one} in ${organization.name}` });
  }
  return steps;
}
