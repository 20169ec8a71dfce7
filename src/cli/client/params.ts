import type { PresetStream } from "../../verify/preset-streams.ts";
import { usageError } from "../exit.ts";
import { parseJson } from "./command.ts";

/** Parses parameters such as `owner=nodejs`. A number or boolean is sent as such. */
export function parseParams(
  texts: readonly string[],
  schema: PresetStream["params"] = {},
): Readonly<Record<string, unknown>> {
  const properties = (schema.properties ?? {}) as Readonly<Record<string, { readonly type?: string }>>;
  const params = texts.map((text): readonly [string, unknown] => {
    const { name = "", value = "" } = /^(?<name>\w+)=(?<value>.*)$/s.exec(text)?.groups ?? {};
    if (name === "")
      throw usageError(`The parameter ${text} must have the form name=value, such as owner=nodejs.`);
    const { type = "string" } = properties[name] ?? {};
    return [name, type === "string" ? value : parseJson(value)];
  });
  return Object.fromEntries(params);
}
