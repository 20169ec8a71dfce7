import { z } from "zod";
import type { Json } from "../../data/columns.ts";
import type { Shown } from "../../http/fields.ts";
import type { Field } from "../kit/field.ts";
import { textUpTo } from "../kit/fields.ts";

const MAX_ATTACHMENTS = 16;
/** Maximum total size of a message's metadata and payloads, in bytes. A list response can contain 200 messages, so this limits its size. */
const MAX_ATTACHED_BYTES = 65_536;

const isByte = (value: unknown): boolean =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 255;

/** Array of bytes. Only the first invalid byte is reported, because an array can contain half a million numbers. */
const bytesInput = z
  .custom<readonly number[]>()
  .superRefine((bytes: unknown, context) => {
    const refuse = (path: number[], message: string) =>
      // `continue: false` skips the size check below, because that check requires an array.
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

const attachmentsInput = z
  .array(
    z.strictObject({
      name: z.string().min(1).max(255).meta({ example: "note.txt" }),
      kind: textUpTo(255).meta({ example: "file" }),
      contentType: textUpTo(255).meta({ example: "text/plain" }),
      metadata: bytesInput,
      payload: bytesInput,
    }),
  )
  .max(MAX_ATTACHMENTS)
  .default([])
  .superRefine((attachments, context) => {
    const length = attachments.reduce((sum, one) => sum + one.metadata.length + one.payload.length, 0);
    if (length > MAX_ATTACHED_BYTES)
      context.addIssue({ code: "custom", message: `must hold at most ${MAX_ATTACHED_BYTES} bytes in total` });
  })
  .meta({
    description: `Up to ${MAX_ATTACHMENTS} attachments with ${MAX_ATTACHED_BYTES} bytes in total.`,
    example: [],
  });

const bytes = z.array(z.int().min(0).max(255));
const attachmentSchema = z
  .object({
    name: z.string(),
    kind: z.string().nullable(),
    contentType: z.string().nullable(),
    metadata: bytes.meta({ description: "Bytes.", example: [] }),
    payload: bytes.meta({ description: "Bytes.", example: [104, 105] }),
  })
  .meta({ id: "Attachment", description: "A file or other binary data attached to a message." });
type Attachment = Shown<z.output<typeof attachmentSchema>>;

/** Attachment as stored in the table, where the bytes are Base64 text. */
type StoredAttachment = Omit<Attachment, "metadata" | "payload"> & {
  readonly metadata: string;
  readonly payload: string;
};

const toBase64 = (bytes: readonly number[]): string => Buffer.from(bytes).toString("base64");
// `toJSON()` is six times as fast as copying the bytes with a spread.
const fromBase64 = (text: string): readonly number[] => Buffer.from(text, "base64").toJSON().data;

const attachmentsOf = (stored: readonly StoredAttachment[]): readonly Attachment[] =>
  stored.map((one) => ({ ...one, metadata: fromBase64(one.metadata), payload: fromBase64(one.payload) }));

export const attachments: Field<
  typeof attachmentsInput,
  Json<readonly StoredAttachment[]>,
  z.ZodArray<typeof attachmentSchema>,
  "always"
> = {
  schema: attachmentsInput,
  answer: z.array(attachmentSchema),
  written: "always",
  stored: true,
  toColumn: (value) =>
    JSON.stringify(
      (value as readonly Attachment[]).map((one) => ({
        ...one,
        metadata: toBase64(one.metadata),
        payload: toBase64(one.payload),
      })),
    ),
  fromColumn: (stored) => attachmentsOf(stored as readonly StoredAttachment[]),
};
