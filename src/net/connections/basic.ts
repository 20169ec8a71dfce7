import { z } from "zod";
import { emptySecretText } from "./fields.ts";
import type { ConnectionKind } from "./kind.ts";

const configSchema = z.strictObject({
  username: z
    .string()
    .max(1_024)
    .regex(/^[^:\p{Cc}]*$/u, "must not contain colons or control characters")
    .meta({ example: "inlet" }),
  password: emptySecretText.meta({ example: "swordfish" }),
});

/** HTTP Basic authentication (RFC 7617), with user name and password encoded in UTF-8. */
export const basic: ConnectionKind<typeof configSchema, "basic"> = {
  kind: "basic",
  configSchema,
  secretFields: ["password"],
  apply: ({ username, password }) => ({
    headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` },
  }),
};
