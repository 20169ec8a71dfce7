import { z } from "zod";
import { checkFields } from "../../lib/check-fields.ts";
import { headerName, isHeaderText, NO_HEADER_TEXT, queryName, secretText } from "./fields.ts";
import type { ConnectionKind } from "./kind.ts";

const configSchema = z
  .strictObject({
    in: z.enum(["header", "query"]).default("header").describe("Part of the request that contains the key."),
    name: z
      .string()
      .min(1)
      .max(128)
      .meta({ description: "Name of the header or query parameter.", example: "X-API-Key" }),
    prefix: z.string().max(128).default("").describe("Text before the key, including any trailing space."),
    value: secretText.meta({ description: "The API key.", example: "k-6f1a" }),
  })
  .check(
    checkFields((config, note) => {
      const name = (config.in === "header" ? headerName : queryName).safeParse(config.name);
      for (const { message } of name.error?.issues ?? []) note("name", message);
      if (config.in === "header" && !isHeaderText(config.prefix + config.value))
        note("value", NO_HEADER_TEXT);
    }),
  );

export const apiKey: ConnectionKind<typeof configSchema, "apiKey"> = {
  kind: "apiKey",
  configSchema,
  secretFields: ["value"],
  apply(config) {
    const text = config.prefix + config.value;
    return config.in === "header"
      ? { headers: { [config.name.toLowerCase()]: text } }
      : { query: { [config.name]: text } };
  },
};
