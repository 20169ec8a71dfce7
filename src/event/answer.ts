import { z } from "zod";

const CONTENT_TYPES = ["text/plain", "application/json", "application/xml", "text/xml"] as const;

/** Content of the response to an accepted delivery. Its status is always 200. */
export const answerSchema = z.union(
  [
    z.enum(["outcome", "empty"]),
    z
      .strictObject({
        body: z.string().min(1).max(1024).describe("Text of the response, for example `[accepted]`."),
        contentType: z
          .enum(CONTENT_TYPES)
          .default("text/plain")
          .describe("Content type of the response. Its charset is UTF-8."),
      })
      .describe("A fixed response."),
  ],
  `must be "outcome", "empty", or an object with the text \`body\` and the \`contentType\` ${CONTENT_TYPES.join(", ")}`,
);

export type Answer = z.output<typeof answerSchema>;
