import { z } from "zod";
import { secretHeaderText } from "./fields.ts";
import type { ConnectionKind } from "./kind.ts";

const configSchema = z.strictObject({ token: secretHeaderText.meta({ example: "t-6f1a" }) });

/** Authentication with a bearer token that does not expire (RFC 6750). */
export const bearer: ConnectionKind<typeof configSchema, "bearer"> = {
  kind: "bearer",
  configSchema,
  secretFields: ["token"],
  apply: ({ token }) => ({ headers: { authorization: `Bearer ${token}` } }),
};
