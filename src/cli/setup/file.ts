import { z } from "zod";
import { channelUidSchema } from "../../event/channel.ts";
import type { Finding } from "../../lib/errors.ts";
import { findingsOf, formatPath } from "../../lib/findings.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { blueprint } from "../../resources/apps/blueprints/schema.ts";

const name = z.string().min(1).max(255);
const uid = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, "must be 1 to 64 characters of A-Z a-z 0-9 _ . -");

/**
 * Schema of an app's channel in the config file. The channel overrides the blueprint's channel with the same uid, or is added to
 * the app.
 */
const channel = z.strictObject({
  uid: channelUidSchema,
  kind: z.string().optional(),
  title: z.string().nullable().optional(),
  config: z.record(z.string(), z.unknown()).optional(),
  events: z.array(z.unknown()).optional(),
});
export type DeclaredChannel = Readonly<Omit<z.output<typeof channel>, "events">> & {
  readonly events?: readonly unknown[] | undefined;
};

const app = z.strictObject({
  uid,
  /** Uid of a blueprint that the config file declares in the same organization. */
  blueprint: uid.optional(),
  /** Title of the app. Defaults to the title of its blueprint. */
  title: name.optional(),
  description: z.string().max(4_096).nullable().optional(),
  /** Space of the app. Defaults to the first space in the config file. */
  space: name.optional(),
  channels: z.array(channel).max(100).default([]),
});
export type DeclaredApp = z.output<typeof app>;

const organization = z.strictObject({
  name,
  spaces: z
    .array(z.strictObject({ name }))
    .min(1)
    .prefault([{ name: "default" }]),
  blueprints: z.array(blueprint.input.required({ uid: true })).default([]),
  apps: z.array(app).default([]),
});
export type DeclaredOrganization = z.output<typeof organization>;

const file = z.strictObject({
  /** Schema URL for editors. Inlet ignores it. */
  $schema: z.string().optional(),
  organizations: z.array(organization),
});

/** Parses a config file. Checks only its structure, but not whether names exist or are unique. */
export function parseSetUp(text: string): Result<readonly DeclaredOrganization[], readonly Finding[]> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return err([{ path: "", message: `is not JSON: ${error instanceof Error ? error.message : error}` }]);
  }
  const parsed = file.safeParse(json);
  return parsed.success ? ok(parsed.data.organizations) : err(findingsOf(parsed.error, json));
}

/** Finds duplicate names, and references to objects that the config file does not declare. */
export const findWrongNames = (organizations: readonly DeclaredOrganization[]): readonly Finding[] => [
  ...twice(organizations, ["organizations"], "name", (one) => one.name),
  ...organizations.flatMap((one, index) => findDangling(one, ["organizations", index])),
];

function findDangling(
  { spaces, blueprints, apps }: DeclaredOrganization,
  base: readonly PropertyKey[],
): readonly Finding[] {
  const findings = [
    ...twice(spaces, [...base, "spaces"], "name", (one) => one.name),
    ...twice(blueprints, [...base, "blueprints"], "uid", (one) => one.uid),
    ...twice(apps, [...base, "apps"], "uid", (one) =>
      JSON.stringify([one.space ?? spaces[0]?.name, one.uid]),
    ),
  ];
  for (const [index, one] of apps.entries()) {
    const at = [...base, "apps", index];
    const note = (field: string, message: string) =>
      findings.push({ path: formatPath([...at, field]), message });
    const blueprint = blueprints.find(({ uid }) => uid === one.blueprint);
    if (one.blueprint !== undefined && !blueprint)
      note("blueprint", "must be the uid of a blueprint of the same organization in this file");
    if (one.blueprint === undefined && one.title === undefined)
      note("title", "is required if the app has no blueprint");
    if (one.space !== undefined && !spaces.some(({ name }) => name === one.space)) {
      note("space", "must be the name of a space of the same organization in this file");
    }
    findings.push(...twice(one.channels, [...at, "channels"], "uid", ({ uid }) => uid));
    for (const [number, { uid, kind }] of one.channels.entries()) {
      const known = blueprint?.channels.find((channel) => channel.uid === uid);
      const path = formatPath([...at, "channels", number, "kind"]);
      if (!known && kind === undefined)
        findings.push({ path, message: "is required because the blueprint has no channel with this uid" });
      if (known && kind !== undefined && kind !== known.kind)
        findings.push({ path, message: "must be the kind that the blueprint gives this channel" });
    }
  }
  return findings;
}

function twice<T>(
  all: readonly T[],
  base: readonly PropertyKey[],
  field: string,
  keyOf: (one: T) => string,
): Finding[] {
  const keys = all.map(keyOf);
  const firsts = new Map(keys.map((key, index) => [key, index] as const).toReversed());
  return keys.flatMap((key, index) =>
    firsts.get(key) === index
      ? []
      : [{ path: formatPath([...base, index, field]), message: "occurs more than once, but must be unique" }],
  );
}
