import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { dedupeSchema, onConflictSchema } from "../event/dedupe.ts";
import { parseJson } from "../event/parse-json.ts";
import { secretName } from "./handshake/config.ts";
import { presetRegistrationsSchema } from "./preset-registration.ts";
import { presetStreamsSchema } from "./preset-streams.ts";
import { verificationSchema } from "./schemes.ts";
import { deliveryFields, handshakesField, requestFields } from "./sender-config.ts";

const label = z.string().min(1).max(255);
const hint = z.string().min(1).max(1_024);
const path = z.string().min(1).max(1_024);

const values = z.record(z.string(), z.string());

/** Example delivery of a provider. Credentials and signatures in headers or the query are left out. */
const sampleSchema = z
  .strictObject({
    headers: values.describe(
      "Headers of the example, with names in lower case. Times and ids are placeholders.",
    ),
    query: values.default({}).describe("Decoded query parameters."),
    body: z
      .string()
      .max(65_536)
      .describe(
        "Body of the example as text, which is empty if the provider sends none. Any signature inside it is not valid for your secret.",
      ),
  })
  .describe("An example delivery of the provider, for trying out a channel. It yields at least one event.");

const intakeSchema = z
  .strictObject({
    routeBy: z.array(path).min(1).max(8).describe("Paths of the route key, for `routeBy` of the intake."),
    itemsPath: path
      .optional()
      .describe("`config.itemsPath` of the intake, if the preset's `itemsPath` does not select one list."),
    trustUnsigned: z
      .literal(true)
      .optional()
      .describe(
        "Set if the provider does not sign the route key. Then the intake needs `trustUnsigned: true` and `config.verification.bindDedupe: signedBytes`.",
      ),
    notes: z
      .array(hint)
      .max(8)
      .default([])
      .describe("Limits and setup steps to know before you create the intake."),
  })
  .describe(
    "Settings of an intake, for providers that send the events of all customers to one address. Missing if the provider has an address for each customer.",
  );

export const presetSchema = z.strictObject({
  preset: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, "must be 1 to 64 characters of a-z 0-9 -")
    .describe("Name of the preset, which is also its file name."),
  title: label.describe("The provider's name."),
  description: z
    .string()
    .min(1)
    .max(4_096)
    .describe("Describes the provider's deliveries and how Inlet verifies them."),
  documentationUrl: z.url().describe("URL of the provider's documentation about webhooks."),
  notes: z
    .array(z.string().min(1).max(1_024))
    .max(16)
    .default([])
    .describe("Setup steps at the provider, and limitations to know about."),
  secret: z
    .strictObject({
      label: label.describe("The provider's name for the secret."),
      hint: hint.describe("Location of the secret at the provider."),
    })
    .nullable()
    .describe("The secret that verifies deliveries; `null` when the provider needs no secret."),
  otherSecrets: z
    .array(
      z.strictObject({
        name: secretName.describe(
          "Name of the secret, to be used as `secrets[].name` in the channel's settings.",
        ),
        label: label.describe("The provider's name for the secret."),
        hint: hint.describe("Location of the secret at the provider, or how to create it."),
      }),
    )
    .max(8)
    .default([])
    .describe("Additional, named secrets that the preset's handshakes need."),
  verification: verificationSchema.describe("Verification settings, in the form of `config.verification`."),
  replays: hint
    .optional()
    .describe(
      "How reliably Inlet detects replays (`bindDedupe`) and why, for presets whose signatures never expire.",
    ),
  handshakes: handshakesField.default([]),
  ...requestFields,
  ...deliveryFields,
  typePath: path.optional().describe("Path of an event's type, for definitions that set no `typePath`."),
  idPath: path.optional().describe("Path of an event's id, for definitions that set no `idPath`."),
  itemsPath: path.optional().describe("Path that splits a delivery into items."),
  onConflict: onConflictSchema
    .optional()
    .describe("How to handle an event with a known id but different data, as in `config.dedupe.onConflict`."),
  dedupe: dedupeSchema
    .pick({ by: true, ignore: true })
    .optional()
    .describe("How duplicates are recognized, for channels that do not set `config.dedupe.by`."),
  sample: sampleSchema,
  intake: intakeSchema.optional(),
  streams: presetStreamsSchema,
  registrations: presetRegistrationsSchema,
});
export type Preset = z.output<typeof presetSchema>;

export type Presets = ReadonlyMap<string, Preset>;

const FOLDER = fileURLToPath(new URL("./presets/", import.meta.url));

/** The built-in presets. They are read once, because channels refer to them in their config. */
export function getPresets(): Presets {
  builtIn ??= readPresets();
  return builtIn;
}

let builtIn: Presets | undefined;

/**
 * Reads all provider presets from a folder with one file per provider.
 *
 * @throws Error that names the first invalid file
 */
export function readPresets(folder: string = FOLDER): Presets {
  const files = readdirSync(folder).filter((file) => file.endsWith(".json"));
  const names = files.map((file) => basename(file, ".json")).sort();
  return new Map(names.map((name) => [name, readPreset(folder, name)]));
}

function readPreset(folder: string, name: string): Preset {
  const parsed = presetSchema.safeParse(parseJson(readFileSync(`${folder}/${name}.json`, "utf8")));
  if (!parsed.success)
    throw new Error(`${name}.json is not a valid preset: ${z.prettifyError(parsed.error)}`);
  if (parsed.data.preset !== name)
    throw new Error(`${name}.json must have the same name as its preset, ${parsed.data.preset}`);
  return parsed.data;
}
