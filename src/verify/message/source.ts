import { z } from "zod";
import { err, ok, type Result } from "../../lib/result.ts";
import { compileBodyPath } from "./body-path.ts";

/** Matches a header name, which is an HTTP token (RFC 9110 section 5.6.2). */
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

export const nameField = z
  .string()
  .min(1)
  .max(256)
  .regex(/^[^\p{Cc}]*$/u, "must not contain control characters");

const PLACES = ["header", "query", "body"] as const;

export function findWrongName(where: string, name: string): string | undefined {
  switch (where) {
    case "header":
      return HEADER_NAME.test(name) ? undefined : "must be a valid header name";
    case "body": {
      const compiled = compileBodyPath(name);
      return compiled.ok ? undefined : `is not a valid body path: ${compiled.error}`;
    }
    default:
      return undefined;
  }
}

type Named = { readonly in: string; readonly name: string };

function checkName({ value, issues }: z.core.ParsePayload<Named>): void {
  const message = findWrongName(value.in, value.name);
  if (message !== undefined) issues.push({ code: "custom", path: ["name"], message, input: value.name });
}

export const requestSourceSchema = z
  .strictObject({
    in: z.enum(PLACES).describe("Part of the request that contains the value."),
    name: nameField.describe(
      "Name of the header (case-insensitive) or query parameter, or path in the body: $, .name, ['name'], [0], [*]; for forms, $.field.",
    ),
  })
  .check(checkName);
export type RequestSource = z.output<typeof requestSourceSchema>;

/** Location of a value in a signed request. It can also be an item next to the signature in the same header or field. */
export const messageSourceSchema = z
  .strictObject({
    in: z
      .enum([...PLACES, "item"])
      .describe(
        "Part of the request that contains the value. `item` means another item next to the signature (see `items`).",
      ),
    name: nameField.describe(
      "Name of the header (case-insensitive) or query parameter, path in the body ($.a['b'][0]; for forms, $.field), or key of the item. For items without keys, the position, starting at 0.",
    ),
  })
  .check(checkName);
export type MessageSource = z.output<typeof messageSourceSchema>;

/** Parses the location of a value in a template placeholder, such as `{{header:x-id}}` or `{{item:t}}`. */
export function findSource(where: string, name: string): Result<MessageSource, string> {
  const place = messageSourceSchema.shape.in.safeParse(where);
  if (!place.success) return err("is not a known placeholder");
  const wrong = name === "" ? "must have a name after the colon" : findWrongName(where, name);
  return wrong === undefined ? ok({ in: place.data, name }) : err(wrong);
}
