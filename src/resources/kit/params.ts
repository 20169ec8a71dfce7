import { z } from "zod";
import { isId } from "../../lib/ids.ts";

/** Path parameter schemas by parameter name. A schema's error message is the noun for the 404 response, such as "blueprint". */
export type ParamSchemas = Readonly<Record<string, z.ZodType<string>>>;

const EXAMPLE = "01jc9x2k4v8m3n5p7q9r1s";

/** Schema of an id in a path: `pathId("bp", "blueprint")`. A malformed id gets a 404. */
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
