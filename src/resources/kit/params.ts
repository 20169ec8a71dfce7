import { z } from "zod";
import { isId } from "../../lib/ids.ts";

/** The schemas of a path's parameters, by name. The error of each says what there is none of: "blueprint". */
export type ParamSchemas = Readonly<Record<string, z.ZodType<string>>>;

const EXAMPLE = "01jc9x2k4v8m3n5p7q9r1s";

/** An id in a path: `pathId("bp", "blueprint")`. A malformed one names nothing: 404. */
export const pathId = (prefix: string, what: string): z.ZodType<string> =>
  z
    .string()
    .refine((text) => isId(prefix, text), { error: what })
    .meta({ description: `The ${what}'s id.`, example: `${prefix}_${EXAMPLE}0` });

/** Anything else in a path that must have a form of its own. */
export const pathText = (pattern: RegExp, what: string, example: string): z.ZodType<string> =>
  z
    .string()
    .regex(pattern, { error: what })
    .meta({ description: `The ${what}.`, example });
