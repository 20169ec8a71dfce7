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

/** One delivery of a provider as it arrives, but for the credentials and signatures that are read from headers and query. */
const sampleSchema = z
  .strictObject({
    headers: values.describe("In lower case. Times and ids are those of an example."),
    query: values.default({}).describe("Decoded."),
    body: z
      .string()
      .min(1)
      .max(65_536)
      .describe("As text; a signature that stands in it is none of a secret of yours."),
  })
  .describe("A delivery of the provider, for trying a channel out; it gives at least one event.");

/** A provider as data: how its deliveries are verified, and what it is asked before it sends any. */
export const presetSchema = z.strictObject({
  preset: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, "must be 1 to 64 characters of a-z 0-9 -")
    .describe("Its name, which is that of its file."),
  title: label.describe("The provider's name."),
  description: z.string().min(1).max(4_096).describe("What it sends, and how its deliveries are known."),
  documentationUrl: z.url().describe("Where the provider documents it."),
  notes: z
    .array(z.string().min(1).max(1_024))
    .max(16)
    .default([])
    .describe("What to do at the provider, and what to know, each in a sentence."),
  secret: z
    .strictObject({
      label: label.describe("What the provider calls it."),
      hint: hint.describe("Where to find it."),
    })
    .nullable()
    .describe("The secret that deliveries are verified with; null: none is needed."),
  otherSecrets: z
    .array(
      z.strictObject({
        name: secretName.describe("As `secrets[].name` takes it."),
        label: label.describe("What the provider calls it."),
        hint: hint.describe("Where to find it, or who makes it up."),
      }),
    )
    .max(8)
    .default([])
    .describe("Secrets with names, which handshakes need."),
  verification: verificationSchema.describe("As `config.verification` takes it."),
  replays: hint
    .optional()
    .describe("Of a signature that no time limits: how far replays are told (`bindDedupe`), and why."),
  handshakes: handshakesField.default([]),
  ...deliverySettings,
  typePath: path
    .optional()
    .describe("Where the type of an event stands, for definitions that say nothing else."),
  idPath: path.optional().describe("Where the id of an event stands, for definitions that say nothing else."),
  itemsPath: path.optional().describe("What splits a delivery into items."),
  onConflict: z
    .enum(["quarantine", "duplicate", "publish"])
    .optional()
    .describe("What becomes of a known id with other data, as `config.dedupe.onConflict` takes it."),
  sample: sampleSchema,
});
export type Preset = z.output<typeof presetSchema>;

/** Providers by name. */
export type Presets = ReadonlyMap<string, Preset>;

const FOLDER = fileURLToPath(new URL("./presets/", import.meta.url));

/** All providers that are known: each is a file of the folder `presets`. @throws Error that names a file that does not fit */
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
