import { z } from "zod";
import { isId } from "../../lib/ids.ts";

/** Schemas of the path parameters, by name. The error message of a schema is only the noun for the 404 response: "blueprint". */
export type ParamSchemas = Readonly<Record<string, z.ZodType<string>>>;

const EXAMPLE = "01jc9x2k4v8m3n5p7q9r1s";

/** Schema of an id in a path, such as `pathId("bp", "blueprint")`. A malformed id results in a 404. */
export const pathId = (prefix: string, what: string): z.ZodType<string> =>
  z
    .string()
    .refine((text) => isId(prefix, text), { error: what })
    .meta({ description: `Id of the ${what}.`, example: `${prefix}_${EXAMPLE}0` });

export const pathText = (pattern: RegExp, what: string, example: string): z.ZodType<string> =>
  z
    .string()
    .regex(pattern, { error: what })
    .meta({ description: `The ${what}.`, example });
