import { z } from "zod";
import { paramsSchemaField } from "./preset-params.ts";
import { requiredConnectionSchema } from "./preset-streams.ts";

const label = z.string().min(1).max(255);
const hint = z.string().min(1).max(1_024);
const path = z
  .string()
  .regex(
    /^\$(?:\.[A-Za-z_][A-Za-z0-9_-]*|\['[^']+'\]|\[\d+\])*$/,
    "must be a path of names and indexes, such as $.data.id",
  );
const texts = z.record(z.string(), z.string());

/**
 * A request of a registration. Its texts can contain placeholders:
 *
 * - `params.<name>`: a parameter of the channel.
 * - `address`: the channel's address, to which the provider sends. `secret`: the secret that verifies the provider's deliveries.
 * - `events`: the list of event types. `name`: a unique name of this registration, at most 64 characters of `a-z0-9_`.
 * - `id`: the provider's id of the registration. `kept.<name>`: a value that `create.keep` has read.
 * - `expiresAt`, `expiresAtMs`, `lifetimeSeconds`: the requested end, as ISO 8601 text or in ms since 1970, and the requested lifetime.
 */
const stepFields = {
  method: z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]),
  path: z.string().max(2_048).describe("Path and query that follow `baseUrl`."),
  headers: texts.default({}),
  query: texts.default({}),
  body: z.record(z.string(), z.unknown()).optional().describe("JSON body."),
  form: z
    .record(z.string(), z.string())
    .optional()
    .describe("Form-encoded body. A list becomes one field per item."),
} as const;

const step = z.strictObject(stepFields);

/** Recognizes an error response by its status and a text in its body. */
const errorSchema = z.strictObject({
  status: z.int().min(200).max(599),
  contains: z.string().min(1).optional().describe("Text in the body, compared without case."),
  means: z
    .enum(["exists", "gone", "quota", "scope"])
    .describe(
      "`exists`: the provider already has a registration for this address. `gone`: the registration does not exist. `quota`: the provider allows no further registration. `scope`: the credentials lack a permission.",
    ),
  message: hint.describe("Sentence for the user that names the limit or the permission."),
});

export const presetRegistrationSchema = z.strictObject({
  target: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, "must be 1 to 64 characters of a-z 0-9 -")
    .describe("Name of the kind of object that sends, for the channel's `registration.target`."),
  title: label.describe("Title of the target."),
  description: hint.describe("Describes the deliveries after the registration."),
  documentationUrl: z.url().describe("URL of the provider's documentation of the API."),
  connection: requiredConnectionSchema
    .nullable()
    .describe("Connection that the registration needs; `null` if the provider accepts everyone."),
  params: paramsSchemaField.describe("JSON Schema (2020-12) of the channel's `registration.params`."),
  baseUrl: z
    .string()
    .regex(/^(?:https:\/\/|\{\{params\.)[^?#]+[^/?#]$/)
    .describe("Start of all URLs, without a slash at the end. It may contain parameters."),
  headers: texts.default({}).describe("Headers of all requests."),
  slots: z
    .enum(["many", "one"])
    .default("many")
    .describe("Whether the provider can store several registrations for the same object, or only one."),
  secret: z
    .union([z.enum(["ours", "none"]), z.strictObject({ path })])
    .describe(
      "Origin of the secret that verifies deliveries: Inlet chooses it (`ours`), the response to `create` contains it (`path`), or the registration has none (`none`).",
    ),
  events: z
    .strictObject({
      all: z
        .union([z.array(label), z.null()])
        .describe(
          "Value of `events` if the channel accepts all types. `null` if the provider has no such value.",
        ),
      values: z
        .record(z.string(), label)
        .optional()
        .describe(
          "The provider's names of event types, by the type in the deliveries, where the two differ.",
        ),
    })
    .optional()
    .describe("How event types are named. Left out if the provider does not select events by type."),
  lifetimeSeconds: z
    .int()
    .min(60)
    .optional()
    .describe("Requested lifetime in seconds. Left out if a registration does not expire."),
  create: z.strictObject({
    ...stepFields,
    idPath: path
      .optional()
      .describe(
        "Path of the provider's id. If the value is a URL, the last part of its path is the id. Without `idPath`, `name` is the id of the registration.",
      ),
    expiresPath: path.optional().describe("Path of the end: ISO 8601 text, or a time in s or ms since 1970."),
    keep: z.record(z.string(), path).default({}).describe("Paths of values that later requests need."),
    first: z
      .strictObject({ ...stepFields, keep: z.record(z.string(), path) })
      .optional()
      .describe("A request before, whose values `kept.<name>` the creation needs."),
    confirmation: z
      .strictObject({
        query: label.describe("Query parameter of the handshake that names the registration."),
        equals: z.string().describe("Value of the parameter."),
        leaseSeconds: label.optional().describe("Query parameter with the granted lifetime in seconds."),
      })
      .optional()
      .describe("Handshake with which the provider confirms a creation or renewal after its response."),
    repeatable: z
      .boolean()
      .default(false)
      .describe("Whether a second request replaces the first registration, so that none can be left over."),
  }),
  list: z
    .strictObject({
      ...stepFields,
      itemsPath: path,
      idPath: path.describe("Path of the id in an item."),
      addressPath: path.describe("Path of the address in an item."),
      expiresPath: path.optional(),
      keep: z.record(z.string(), path).default({}).describe("Paths of values in an item, as in `create`."),
      next: z
        .union([z.literal("link"), path, z.strictObject({ query: label, path })])
        .optional()
        .describe(
          "Location of the URL of the next page: the header `Link`, or a path. An object names a query parameter for the value at a path, such as a cursor.",
        ),
    })
    .optional()
    .describe("Lists the registrations of the object, to find Inlet's own."),
  check: z
    .strictObject({
      ...stepFields,
      addressPath: path.optional().describe("Path of the address to which the provider sends."),
      expiresPath: path.optional(),
      active: z
        .strictObject({ path, equals: z.union([z.string(), z.boolean(), z.number()]) })
        .optional()
        .describe("Value that shows that the provider sends. Any other value means that it has stopped."),
    })
    .optional()
    .describe("Reads the registration. Without it, `list` is used, if there is one."),
  update: step
    .optional()
    .describe(
      "Changes address, secret and events. Without it, Inlet creates a new registration and removes the old one.",
    ),
  renew: z
    .union([z.literal("recreate"), z.strictObject({ ...stepFields, expiresPath: path.optional() })])
    .optional()
    .describe("Extends the registration. `recreate` creates a new one and removes the old one."),
  remove: step.describe("Removes the registration."),
  signals: z
    .strictObject({
      itemsPath: path.describe("Path of the list of items in the JSON body."),
      path: path.describe(
        "Path of the signal in an item. A delivery whose items all have one is not published.",
      ),
      values: z
        .record(z.string(), z.enum(["renew", "check", "reconcile"]))
        .describe(
          "Reaction to each value. `renew`: extend the registration. `check`: ask the provider whether it still exists. `reconcile`: find missed events.",
        ),
    })
    .optional()
    .describe("Deliveries with which the provider reports the state of the registration."),
  manualRemoval: hint.describe("How a person removes the registration at the provider."),
  errors: z.array(errorSchema).default([]).describe("Error responses of the provider with a known meaning."),
});

/** How Inlet registers the address of a channel at a provider. */
export type PresetRegistration = z.output<typeof presetRegistrationSchema>;
export type RegistrationSignals = NonNullable<PresetRegistration["signals"]>;
export type RegistrationSignal = RegistrationSignals["values"][string];
export type RegistrationStep = z.output<typeof step>;
export type RegistrationError = z.output<typeof errorSchema>;

export const presetRegistrationsSchema = z
  .array(presetRegistrationSchema)
  .max(8)
  .default([])
  .describe(
    "Objects of the provider at which Inlet can register a channel's address. The first is the default of `registration.target`.",
  );
