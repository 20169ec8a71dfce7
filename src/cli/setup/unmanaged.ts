import { sql } from "kysely";
import type { Trx } from "../../data/database.ts";
import type { WantedOrganization } from "./check.ts";
import type { Step } from "./plan.ts";

const SHOWN = 20;

/** Objects of the organization that the file does not declare; none is touched. Long lists end in a count. */
export async function findUnmanaged(
  trx: Trx,
  organization: { readonly id: string; readonly name: string },
  { spaces, blueprints, apps }: WantedOrganization,
): Promise<readonly Step[]> {
  const declaredApps = apps.map(({ space, uid }) => `${space}/${uid}`);
  const declaredChannels = apps.flatMap(({ space, uid, channels }) =>
    channels.map((channel) => `${space}/${uid}/${channel.uid}`),
  );
  const found = [
    await list(trx, "space", spaces, sql`SELECT name FROM spaces WHERE organization_id = ${organization.id}`),
    await list(
      trx,
      "blueprint",
      blueprints.map(({ uid }) => uid),
      sql`SELECT uid AS name FROM blueprints WHERE organization_id = ${organization.id}`,
    ),
    await list(
      trx,
      "app",
      declaredApps,
      sql`SELECT spaces.name || '/' || apps.uid AS name FROM apps JOIN spaces ON spaces.id = space_id
          WHERE apps.organization_id = ${organization.id}`,
    ),
    await list(
      trx,
      "channel",
      declaredChannels,
      sql`SELECT spaces.name || '/' || apps.uid || '/' || channels.uid AS name
          FROM channels JOIN apps ON apps.id = app_id JOIN spaces ON spaces.id = space_id
          WHERE channels.organization_id = ${organization.id}
            AND spaces.name || '/' || apps.uid = ANY(${declaredApps})`,
    ),
  ];
  return found.flat().map((called) => ({ action: "unmanaged", object: `${called} in ${organization.name}` }));
}

async function list(
  trx: Trx,
  what: string,
  declared: readonly string[],
  all: ReturnType<typeof sql>,
): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string; total: number }>`
    SELECT name, count(*) OVER () AS total FROM (${all}) AS found
    WHERE name <> ALL(${[...declared]}) ORDER BY name LIMIT ${SHOWN}`.execute(trx);
  const more = (rows[0]?.total ?? 0) - rows.length;
  return [
    ...rows.map(({ name }) => `${what} ${name}`),
    ...(more > 0 ? [`${more} more of the kind ${what}`] : []),
  ];
}
