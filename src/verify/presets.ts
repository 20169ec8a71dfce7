import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { secretName } from "./handshake/settings.ts";
import { verificationSchema } from "./schemes.ts";
import { deliverySettings, handshakesField } from "./sender-settings.ts";

const label = z.string().min(1).max(255);
const hint = z.string().min(1).max(1_024);
const path = z.string().min(1).max(1_024);

const values = z.record(z.string(), z.string());

/** An example delivery of a provider. It contains no credentials or signatures that Inlet reads from headers or the query. */
const sampleSchema = z
  .strictObject({
    headers: values.describe("Header names are in lower case. Times and ids are example values."),
    query: values.default({}).describe("Decoded query parameters."),
    body: z
      .string()
      .min(1)
      .max(65_536)
      .describe("The body as text. A signature inside it was not made with your secret."),
  })
  .describe("An example delivery of the provider, for trying out a channel. It yields at least one event.");

/** Describes a provider: how deliveries are verified, its handshakes, and the paths of values in its deliveries. */
export const presetSchema = z.strictObject({
  preset: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, "must be 1 to 64 characters of a-z 0-9 -")
    .describe("Name of the preset. It equals the name of its file."),
  title: label.describe("The provider's name."),
  description: z
    .string()
    .min(1)
    .max(4_096)
    .describe("The deliveries that the provider sends, and how they are verified."),
  documentationUrl: z.url().describe("The provider's own documentation."),
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
        name: secretName.describe("Value for `secrets[].name` of the channel."),
        label: label.describe("The provider's name for the secret."),
        hint: hint.describe("Location of the secret at the provider, or how to create it."),
      }),
    )
    .max(8)
    .default([])
    .describe("Named secrets that handshakes need."),
  verification: verificationSchema.describe("Verification settings, in the form of `config.verification`."),
  replays: hint
    .optional()
    .describe(
      "For signatures without a time limit: how well Inlet recognizes replays (`bindDedupe`), and why.",
    ),
  handshakes: handshakesField.default([]),
  ...deliverySettings,
  typePath: path.optional().describe("Path of an event's type, for definitions that set no `typePath`."),
  idPath: path.optional().describe("Path of an event's id, for definitions that set no `idPath`."),
  itemsPath: path.optional().describe("Path that splits a delivery into items."),
  onConflict: z
    .enum(["quarantine", "duplicate", "publish"])
    .optional()
    .describe("How to handle a known id with other data, in the form of `config.dedupe.onConflict`."),
  sample: sampleSchema,
});
export type Preset = z.output<typeof presetSchema>;

/** All presets by name. Each one describes a provider. */
export type Presets = ReadonlyMap<string, Preset>;

const FOLDER = fileURLToPath(new URL("./presets/", import.meta.url));

/** Reads all presets from a folder, which contains one file per provider. @throws Error that names the first invalid file */
export function readPresets(folder: string = FOLDER): Presets {
  const files = readdirSync(folder).filter((file) => file.endsWith(".json"));
  const names = files.map((file) => basename(file, ".json")).sort();
  return new Map(names.map((name) => [name, readPreset(folder, name)]));
}

function readPreset(folder: string, name: string): Preset {
  const parsed = presetSchema.safeParse(JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8")));
  if (!parsed.success) throw new Error(`${name}.json is no preset: ${z.prettifyError(parsed.error)}`);
  if (parsed.data.preset !== name) throw new Error(`${name}.json is the preset ${parsed.data.preset}`);
  return parsed.data;
}
