import { z } from "zod";
import { definitionsSchema } from "../event/definition.ts";
import { paramsSchemaField } from "./preset-params.ts";

const label = z.string().min(1).max(255);
const hint = z.string().min(1).max(1_024);

/** Kinds of connections that a stream can require. */
const connectionKind = z.enum(["apiKey", "basic", "bearer", "custom", "oauth2"]);

/** Credentials that calls to a provider's API need. */
export const requiredConnectionSchema = z.strictObject({
  kinds: z.array(connectionKind).min(1).describe("Kinds of connections with which the API can be called."),
  scopes: z.array(label).default([]).describe("OAuth scopes or permissions that the credentials need."),
  hint: hint.describe("Place at the provider where you create the credentials."),
});

export const presetStreamSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, "must be 1 to 64 characters of a-z 0-9 -")
    .describe("Name of the stream, for the channel's `stream`."),
  title: label.describe("Title of the stream."),
  description: hint.describe("Items that become events, and how new items are recognized."),
  documentationUrl: z.url().describe("URL of the provider's documentation of the API."),
  connection: requiredConnectionSchema
    .nullable()
    .describe("Connection that the channel needs; `null` if the API is open."),
  rateLimit: hint.optional().describe("The provider's limit on requests."),
  params: paramsSchemaField.describe(
    "JSON Schema (2020-12) of the channel's `params`, such as the name of a repository.",
  ),
  config: z
    .record(z.string(), z.unknown())
    .describe(
      "Settings of the channel. `{{params.name}}` stands for a parameter. The channel's own settings take precedence.",
    ),
  reconciles: z
    .strictObject({
      as: z.record(z.string(), z.unknown()).optional().describe("Default of the channel's `as`."),
      match: z.enum(["identity", "id"]).optional().describe("Default of the channel's `match`."),
    })
    .optional()
    .describe(
      "Defaults of a channel that finds the events which the provider's webhooks missed. Only set if items and webhooks have the same ids.",
    ),
  events: definitionsSchema.describe("Event definitions of a channel that has none of its own."),
});

/** A list of a provider's items that a polling channel can read. */
export type PresetStream = z.output<typeof presetStreamSchema>;

export const presetStreamsSchema = z
  .array(presetStreamSchema)
  .max(16)
  .default([])
  .describe(
    "Lists of the provider's API that a polling channel can read with `preset`, `stream` and `params`.",
  );
