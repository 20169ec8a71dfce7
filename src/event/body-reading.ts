import { z } from "zod";
import { isCharset } from "./content-type.ts";

export const formReadingSchema = z.union(
  [
    z.literal("fields").describe("Reads the form as an object of its fields."),
    z
      .strictObject({
        field: z.string().min(1).max(255).describe("Name of the field that contains the JSON text."),
      })
      .describe("Reads the JSON text of one field as the body."),
    z
      .strictObject({
        refuse: z
          .string()
          .min(1)
          .max(1_024)
          .describe("One sentence that says how to change the sender's configuration."),
      })
      .describe("Quarantines form deliveries as `invalid_body`, with this text as the detail."),
  ],
  { error: 'must be "fields", {"field": …} or {"refuse": …} with a text' },
);

export type FormReading = z.output<typeof formReadingSchema>;

const UNKNOWN_CHARSET =
  "must be the name of a character encoding from https://encoding.spec.whatwg.org, such as windows-1252";

export const formCharsetSchema = z.union(
  [
    z
      .string()
      .min(1)
      .max(64)
      .refine(isCharset, UNKNOWN_CHARSET)
      .describe("Name of the encoding, such as `windows-1252` or `GBK`."),
    z
      .strictObject({
        field: z
          .string()
          .min(1)
          .max(255)
          .describe("Name of the form field that contains the encoding's name."),
      })
      .describe("Reads the name of the encoding from a field of the form."),
    z
      .strictObject({
        fields: z
          .string()
          .min(1)
          .max(255)
          .describe("Name of the form field that contains a JSON object with the encoding of each field."),
      })
      .describe("Reads the encoding of each field from a JSON object in `multipart/form-data`."),
  ],
  { error: `${UNKNOWN_CHARSET}, {"field": …}, or {"fields": …}` },
);

export type FormCharset = z.output<typeof formCharsetSchema>;

export const filesSchema = z
  .enum(["base64", "omit", "reject"])
  .describe(
    "How to read files in `multipart/form-data`. `base64` publishes each as `{filename, contentType, size, data_base64}`, because Inlet keeps no other copy. `omit` replaces `data_base64` by `sha256` and `omitted: true`, which drops the content. `reject` treats deliveries with files as `invalid_body`. Defaults to the preset's setting, or else to `base64`.",
  );

export type FileReading = z.output<typeof filesSchema>;

export const bodyDecodingSchema = z
  .strictObject({
    path: z
      .string()
      .min(1)
      .max(1_024)
      .describe(
        "Path of the encoded text in the body (`$` is the whole body), such as `$.message.data`. If it selects several texts, each is decoded.",
      ),
    as: z
      .enum(["json", "base64", "base64-json"])
      .describe(
        "Encoding of the text: `json` contains a JSON document, `base64` a text in base64, `base64-json` a JSON document in base64.",
      ),
  })
  .describe("A text in the body that contains a further document.");

export type BodyDecoding = z.output<typeof bodyDecodingSchema>;

/** How to read the bodies of a channel's deliveries, from the channel's config and its preset. */
export interface BodyReading {
  readonly forms: FormReading;
  readonly formCharset?: FormCharset | undefined;
  /** How to read files in multipart forms. Default: `base64`. */
  readonly files?: FileReading | undefined;
  readonly decode?: BodyDecoding | undefined;
}

export const DEFAULT_READING: BodyReading = { forms: "fields" };
