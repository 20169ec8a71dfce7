import { z } from "zod";
import { CHANNEL_ID_EXAMPLE } from "../../../channels/entity.ts";
import { CHANNEL_STATES } from "../../../event/channel.ts";
import { MAX_ROUTE_KEY_CHARS, routingSchema } from "../../../event/intake.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { toPatchSchema } from "../../kit/merge.ts";

export const intakeContentSchema = routingSchema.extend({
  config: z
    .record(z.string(), z.unknown())
    .default({})
    .describe(
      "Settings of a webhook channel: how to verify and read deliveries, and their limits. The first write starts from the config of the blueprint's channel. `itemsPath` must select one list. Secrets are write-only.",
    ),
});

export const intakePatchSchema = toPatchSchema(intakeContentSchema).meta({
  example: { channel: "main", routeBy: ["$.team_id"], config: { preset: "slack" } },
});

export const intakeSchema = z
  .object({
    blueprintId: id("bp"),
    organizationId: id("org"),
    url: z
      .string()
      .nullable()
      .meta({
        description:
          "Address to which the provider sends the events of all customers. Null for callers without `channels.read`.",
        example: `https://hooks.example.com/hooks/${CHANNEL_ID_EXAMPLE}`,
      }),
    ...routingSchema.shape,
    config: z.record(z.string(), z.unknown()),
    state: z.enum(CHANNEL_STATES).meta({
      description:
        "`needsSetup` means that a secret is missing, so the address responds with 401. `paused` means that deliveries are buffered until you resume the intake.",
    }),
    awaitsApproval: z.boolean().meta({
      description:
        "Whether a store must approve the blueprint before `channel`, `routeBy`, `trustUnsigned` and `config` take effect. Until then, the approved settings apply. Secrets take effect at once.",
    }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: "Intake", description: "One address for the events of all installs of a blueprint." });
export type Intake = Shown<z.output<typeof intakeSchema>>;

export const routeKey = z
  .string()
  .min(1)
  .max(MAX_ROUTE_KEY_CHARS)
  .refine((key) => !key.includes("\0"), "must not contain a NUL character");

const MAX_ROUTE_KEYS = 100;

export const routeKeysSchema = z.strictObject({
  keys: z
    .array(routeKey)
    .max(MAX_ROUTE_KEYS)
    .refine((keys) => new Set(keys).size === keys.length, "must not contain a key twice")
    .describe("Route keys of the install. They replace the keys that were set before.")
    .meta({ example: ["T0123ABCD"] }),
});

export const installSchema = z
  .object({
    appId: id("app"),
    organizationId: id("org"),
    routeKeys: z.array(z.object({ key: z.string() })),
    eventsLastDay: z.int().nullable().meta({
      description:
        "Number of events of the last day in the topics of the install's channel, counted up to 500 per topic. Null if Redis is unavailable.",
    }),
    quarantined: z.int().nullable().meta({
      description: "Number of quarantined items of the install's channel. Null if Redis is unavailable.",
    }),
    createdAt: timestamp,
  })
  .meta({ id: "Install", description: "An app that was installed from the blueprint, with counts only." });
export type Install = Shown<z.output<typeof installSchema>>;
