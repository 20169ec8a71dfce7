import { z } from "zod";
import { nameField } from "./message/source.ts";

export const tokenSettings = z
  .strictObject({
    scheme: z
      .literal("token")
      .describe("The secret itself comes with each delivery; anyone who sees one can send others."),
    in: z
      .enum(["header", "bearer", "basic", "query", "body"])
      .default("header")
      .describe(
        "Where it stands: a header; `Authorization: Bearer`; `Authorization: Basic`, of which the secret is user:password; a query parameter; the body. A channel's address has no further path: it is a credential itself.",
      ),
    name: nameField
      .optional()
      .describe(
        "The header (any case), query parameter, or path in the body ($.token; of a form, $.field); where a path yields several values, each must be right. Of bearer and basic: absent.",
      ),
    prefix: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe("What stands before it in the header, such as `Token `."),
  })
  .describe("A shared secret that is sent along.");
