import { z } from "zod";
import { err, ok, type Result } from "../../lib/result.ts";
import { compileBodyPath } from "./body-path.ts";

/** Of a header: a token (RFC 9110 section 5.6.2). */
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

export const nameField = z
  .string()
  .min(1)
  .max(256)
  .regex(/^[^\p{Cc}]*$/u, "must not hold control characters");

const PLACES = ["header", "query", "body"] as const;

/** Why a name cannot stand where it is said to; undefined where it can. */
export function findWrongName(where: string, name: string): string | undefined {
  switch (where) {
    case "header":
      return HEADER_NAME.test(name) ? undefined : "must be the name of a header";
    case "body": {
      const compiled = compileBodyPath(name);
      return compiled.ok ? undefined : `as a path of the body ${compiled.error}`;
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

/** One value of a request. */
export const requestSourceSchema = z
  .strictObject({
    in: z.enum(PLACES).describe("Where it stands."),
    name: nameField.describe(
      "The header (any case), the query parameter, or the path in the body: $, .name, ['name'], [0], [*]; of a form, $.field.",
    ),
  })
  .check(checkName);
export type RequestSource = z.output<typeof requestSourceSchema>;

/** One value of a signed request, or of what stands beside the signature in its own header. */
export const messageSourceSchema = z
  .strictObject({
    in: z
      .enum([...PLACES, "item"])
      .describe("Where it stands; item: beside the signature, as `items` splits it."),
    name: nameField.describe(
      "The header (any case), the query parameter, the path in the body ($.a['b'][0]; of a form, $.field), or the item's key (its place from 0 where items have no keys).",
    ),
  })
  .check(checkName);
export type MessageSource = z.output<typeof messageSourceSchema>;

/** The source that a placeholder of a template names: `{{header:x-id}}`, `{{item:t}}`. */
export function findSource(where: string, name: string): Result<MessageSource, string> {
  const place = messageSourceSchema.shape.in.safeParse(where);
  if (!place.success) return err("there is no such thing");
  const wrong = name === "" ? "names nothing" : findWrongName(where, name);
  return wrong === undefined ? ok({ in: place.data, name }) : err(wrong);
}
