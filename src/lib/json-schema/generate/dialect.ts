import type { Finding } from "../../errors.ts";
import { err, ok, type Result } from "../../result.ts";
import type { JsonSchema } from "../compiled-schema.ts";

export type Dialect = "draft-07" | "2020-12";

/** URIs of the meta-schemas. */
export const META_SCHEMAS: Readonly<Record<Dialect, string>> = {
  "draft-07": "http://json-schema.org/draft-07/schema",
  "2020-12": "https://json-schema.org/draft/2020-12/schema",
};

/** Returns the dialect that `$schema` names. Defaults to 2020-12 if there is no `$schema`. */
export function dialectOf(schema: JsonSchema): Result<Dialect, Finding> {
  const named = typeof schema === "object" ? schema.$schema : undefined;
  if (named === undefined) return ok("2020-12");
  const address = typeof named === "string" ? named.replace(/^https?:/, "").replace(/#$/, "") : undefined;
  for (const dialect of ["draft-07", "2020-12"] as const) {
    if (META_SCHEMAS[dialect].replace(/^https?:/, "") === address) return ok(dialect);
  }
  const known = Object.values(META_SCHEMAS).join(" or ");
  return err({ path: "/$schema", message: `must be ${known} (the default)` });
}
