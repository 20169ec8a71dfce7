import { z } from "zod";

export type Params = Readonly<Record<string, unknown>>;

/** JSON Schema (2020-12) of the parameters of a preset, as its file states it. */
export const paramsSchemaField = z.record(z.string(), z.unknown());

/** Parameters of a preset, as a channel gives them. The preset's own schema restricts them further. */
export const paramsField = z.record(
  z.string().max(64),
  z.union([z.string().max(1_024), z.number(), z.boolean()]),
);

/** Validates parameters by the preset's JSON Schema, which also adds defaults. */
export function parseParams(schema: Params, given: unknown = {}): z.ZodSafeParseResult<Params> {
  return (z.fromJSONSchema(schema) as z.ZodType<Params>)
    .superRefine((values, context) => {
      for (const [name, value] of Object.entries(values)) {
        const message = typeof value === "string" ? findParamError(value) : undefined;
        if (message !== undefined) context.addIssue({ code: "custom", path: [name], message });
      }
    })
    .safeParse(given);
}

/** Returns why a parameter could change more of the request than its place in it. */
function findParamError(value: string): string | undefined {
  if (value.includes("{{")) return "must not contain {{, which begins a placeholder";
  return value === "." || value === ".."
    ? "must not be . or .., which would change the path of the URL"
    : undefined;
}
