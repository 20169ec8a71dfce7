import { z } from "zod";

/** A JSON Schema document as the user wrote it: an object, or `true`/`false`. */
export const jsonSchemaDocument = z.union([z.record(z.string(), z.unknown()), z.boolean()]);

const path = z.string().min(1).max(1024);

/**
 * One event definition of a channel: what of a delivery becomes an event, and of which type. Shapes only; that the paths
 * and the schema compile is checked where they are written.
 */
export const definitionSchema = z
  .strictObject({
    type: z
      .string()
      .min(1)
      .max(255)
      // As JSON Schema it is also read without the flag `u`, which `\p{Cc}` needs.
      // biome-ignore lint/suspicious/noControlCharactersInRegex: a type with control characters is refused
      .regex(/^[^\u0000-\u001f\u007f-\u009f]*$/, "must not contain control characters")
      .refine((type) => type.isWellFormed(), "must not contain lone surrogates")
      .refine((type) => type !== "*", "must not be *, which stands for all types"),
    typePath: path.nullable().optional().describe("null: none, also where the channel's preset has one"),
    idPath: path.nullable().optional().describe("null: none, also where the channel's preset has one"),
    payloadPath: path.optional(),
    schema: jsonSchemaDocument.optional(),
  })
  .readonly()
  .meta({ id: "EventDefinition", description: "What of a delivery becomes an event, and of which type." });

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
          message: `the type ${JSON.stringify(type)} stands twice`,
        });
      }
      seen.add(type);
    });
  });

/** Definitions with the paths that they do not speak of themselves, as the channel's preset has them. */
export const fillPaths = (
  definitions: readonly Definition[],
  { typePath, idPath }: { readonly typePath?: string | undefined; readonly idPath?: string | undefined },
): readonly Definition[] =>
  definitions.map((definition) => ({
    ...definition,
    typePath: definition.typePath === undefined ? typePath : definition.typePath,
    idPath: definition.idPath === undefined ? idPath : definition.idPath,
  }));
