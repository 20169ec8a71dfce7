import { z } from "zod";
import { patchOf } from "../kit/merge.ts";

/** What can be said, by API keys and live tokens alike. */
const MAX_CONTENT_CHARS = 32_768;
const MAX_ATTACHMENTS = 16;
/** Metadata and payload of all of a message's attachments. A list answers up to 200 messages. */
const MAX_ATTACHED_BYTES = 65_536;
const MAX_INT4 = 2_147_483_647;

const isByte = (value: unknown): boolean =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 255;

/** An array of bytes. One finding tells where the first is that is none: a body holds half a million numbers. */
const bytesInput = z
  .custom<readonly number[]>()
  .superRefine((bytes: unknown, context) => {
    const refuse = (path: number[], message: string) =>
      // Nothing that is made of it is looked into.
      context.addIssue({ code: "custom", path, message, continue: false });
    if (!Array.isArray(bytes)) return refuse([], "must be an array of integers from 0 to 255");
    const wrong = bytes.findIndex((value) => !isByte(value));
    if (wrong >= 0) refuse([wrong], "must be an integer from 0 to 255");
  })
  .default([])
  .meta({
    description: "Bytes.",
    shown: { type: "array", items: { type: "integer", minimum: 0, maximum: 255 }, default: [] },
  });

const short = z.string().max(255).nullable().default(null);
const attachmentInput = z.strictObject({
  name: z.string().min(1).max(255).meta({ example: "note.txt" }),
  kind: short.meta({ example: "file" }),
  contentType: short.meta({ example: "text/plain" }),
  metadata: bytesInput,
  payload: bytesInput,
});

export const contentInput = z.string().min(1).max(MAX_CONTENT_CHARS).meta({ example: "Hello" });

export const messageInput = z.strictObject({
  content: contentInput,
  aiRole: z.int().min(-MAX_INT4).max(MAX_INT4).nullable().default(null),
  attachments: z
    .array(attachmentInput)
    .max(MAX_ATTACHMENTS)
    .default([])
    .superRefine((attachments, context) => {
      const length = attachments.reduce((sum, one) => sum + one.metadata.length + one.payload.length, 0);
      if (length > MAX_ATTACHED_BYTES)
        context.addIssue({ code: "custom", message: `must hold ${MAX_ATTACHED_BYTES} bytes in all at most` });
    })
    .meta({ description: `Up to ${MAX_ATTACHMENTS}, with ${MAX_ATTACHED_BYTES} bytes in all.`, example: [] }),
});
export type MessageInput = z.output<typeof messageInput>;

export const messagePatch = patchOf(messageInput);
