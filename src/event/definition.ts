import { z } from "zod";
import { isAttributeText } from "./cloud-event.ts";

/** A JSON Schema exactly as the user wrote it: an object, `true` or `false`. */
export const jsonSchemaDocument = z.union([z.record(z.string(), z.unknown()), z.boolean()]);

const path = z.string().min(1).max(1024);

/**
 * An event definition of a channel, which selects the parts of a delivery that become events of one type.
 *
 * This schema checks only the form. The API route that writes definitions also compiles their paths and JSON Schemas.
 */
export const definitionSchema = z
  .strictObject({
    type: z
      .string()
      .min(1)
      .max(255)
      // JSON Schema validators may compile the pattern without the `u` flag, which `\p{Cc}` needs.
      // biome-ignore lint/suspicious/noControlCharactersInRegex: this pattern rejects control characters
      .regex(/^[^\u0000-\u001f\u007f-\u009f]*$/, "must not contain control characters")
      .refine(isAttributeText, "must not contain lone surrogates or noncharacters")
      .refine((type) => type !== "*", "must not be *, because * means all types"),
    typePath: path
      .nullable()
      .optional()
      .describe(
        "JSONPath of a value that must equal `type`. Default: the path of the channel's preset, which `null` turns off.",
      ),
    idPath: path
      .nullable()
      .optional()
      .describe(
        "JSONPath of the id that identifies repeats. Default: the path of the channel's preset, which `null` turns off.",
      ),
    payloadPath: path
      .optional()
      .describe("JSONPath of the event's data. Without it, the data is the whole item."),
    timePath: path
      .optional()
      .describe(
        "Path of the event's time: an ISO 8601 or RFC 2822 time, or seconds or milliseconds since 1970. Without a readable time there, the event has the time of receipt. Not for CloudEvents channels.",
      ),
    subjectPath: path
      .optional()
      .describe(
        "Path of the event's `subject`: one text of at most 512 characters without control characters. Without such a value there, the event has no subject. Not for CloudEvents channels.",
      ),
    keyPath: path
      .optional()
      .describe(
        "Path of the event's `partitionkey`: one text of at most 512 characters without control characters. Without such a value there, the event has no key. Not for CloudEvents channels.",
      ),
    when: jsonSchemaDocument
      .optional()
      .describe(
        "JSON Schema over `{headers, query, item}`. Items that do not match it are ignored: not published, not quarantined. Other channel kinds have other values next to `item`.",
      ),
    schema: jsonSchemaDocument
      .optional()
      .describe("JSON Schema of the data. An item with other data is quarantined."),
    agents: z
      .boolean()
      .optional()
      .describe("Whether AI agents may subscribe to the events of this type. Default: false."),
  })
  .readonly()
  .meta({
    id: "EventDefinition",
    description: "Selects the part of a delivery that becomes an event of one type.",
  });

export type Definition = z.infer<typeof definitionSchema>;

export const definitionsSchema = z
  .array(definitionSchema)
  .max(1000)
  .readonly()
  .superRefine((definitions, context) => {
    const seen = new Set<string>();
    definitions.forEach(({ type }, index) => {
      if (seen.has(type)) {
        context.addIssue({
          code: "custom",
          path: [index, "type"],
          message: `the type ${JSON.stringify(type)} is defined more than once`,
        });
      }
      seen.add(type);
    });
  });

/** Returns the JSON Schemas of all definitions, in a fixed order. */
export const listSchemas = (
  definitions: readonly Pick<Definition, "when" | "schema">[],
): readonly NonNullable<Definition["schema"]>[] =>
  definitions.flatMap(({ when, schema }) => [when, schema].filter((one) => one !== undefined));

/** Fills in default paths of the preset for paths that are `undefined`. `null` means that a path is turned off. */
export const fillPaths = (
  definitions: readonly Definition[],
  { typePath, idPath }: { readonly typePath?: string | undefined; readonly idPath?: string | undefined },
): readonly Definition[] =>
  definitions.map((definition) => ({
    ...definition,
    typePath: definition.typePath === undefined ? typePath : definition.typePath,
    idPath: definition.idPath === undefined ? idPath : definition.idPath,
  }));
