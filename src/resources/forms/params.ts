import { z } from "zod";

/** Maximum number of entries per list in the settings of an input. */
const MAX_ENTRIES = 1_000;

const text = z.string().max(1_024).nullable().default(null);
const texts = z.array(z.string().min(1).max(255)).max(MAX_ENTRIES).default([]);
const flag = z.boolean().nullable().default(null);
const number = z.number().nullable().default(null);
const count = z.int().min(0).nullable().default(null);
const size = z.number().min(0).nullable().default(null);
const step = z.number().positive().nullable().default(null);
/** RFC 3339, section 5.6. */
const instant = z.iso.datetime({
  offset: true,
  error: "must be an RFC 3339 time, for example 2026-01-31T09:30:00Z",
});
const dateTime = instant.nullable().default(null);
/** A date or a date with time. Clients send both as `minDate` and `maxDate`. */
const date = z
  .union([z.iso.date(), instant], {
    error: "must be a date such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T09:30:00Z",
  })
  .nullable()
  .default(null);
const time = z.iso.time("must be a time of day, for example 09:30 or 09:30:00").nullable().default(null);

type Pair<B> = readonly [min: keyof B & string, max: keyof B & string, measure?: (bound: string) => number];

/** Rejects settings whose minimum exceeds their maximum. A missing bound is always valid. */
const ordered =
  <B extends object>(...pairs: readonly Pair<B>[]) =>
  (block: B, context: z.RefinementCtx): void => {
    for (const [min, max, measure = Number] of pairs) {
      const [least, most] = [block[min], block[max]];
      if (least !== null && most !== null && measure(String(least)) > measure(String(most)))
        context.addIssue({ code: "custom", path: [max], message: `must not be less than ${min}` });
    }
  };

const timeOfDay = (bound: string): number => Date.parse(`1970-01-01T${bound}Z`);

/** Settings by kind of input. A form stores them in `params` under the name of the kind. */
export const BLOCKS = {
  address: z.strictObject({ precision: text.meta({ example: "street" }) }),
  choice: z
    .strictObject({
      options: z
        .array(z.strictObject({ label: z.string().max(1_024), value: z.string().max(1_024) }))
        .max(MAX_ENTRIES)
        .default([]),
      multiple: flag,
      allowOther: flag,
      otherLabel: text,
      minCount: count,
      maxCount: count,
    })
    .superRefine(ordered(["minCount", "maxCount"])),
  date: z
    .strictObject({ minDate: date, maxDate: date })
    .superRefine(ordered(["minDate", "maxDate", Date.parse])),
  dateTime: z
    .strictObject({ minDateTime: dateTime, maxDateTime: dateTime })
    .superRefine(ordered(["minDateTime", "maxDateTime", Date.parse])),
  email: z.strictObject({ domainWhitelist: texts, domainBlacklist: texts }),
  file: z
    .strictObject({
      allowMultiple: flag,
      allowedTypes: texts,
      maxItems: count,
      minSize: size,
      maxSize: size,
    })
    .superRefine(ordered(["minSize", "maxSize"])),
  nps: z.strictObject({ minLabel: text, maxLabel: text }),
  number: z
    .strictObject({ minValue: number, maxValue: number, precision: count, step })
    .superRefine(ordered(["minValue", "maxValue"])),
  phone: z.strictObject({ allowCountries: texts, denyCountries: texts }),
  range: z
    .strictObject({ minValue: number, maxValue: number, step })
    .superRefine(ordered(["minValue", "maxValue"])),
  rating: z
    .strictObject({
      minRating: number,
      maxRating: number,
      minLabel: text,
      maxLabel: text,
      symbol: text.meta({ example: "star" }),
    })
    .superRefine(ordered(["minRating", "maxRating"])),
  secret: z.strictObject({}),
  text: z
    .strictObject({ long: flag, minLength: count, maxLength: count, minWords: count, maxWords: count })
    .superRefine(ordered(["minLength", "maxLength"], ["minWords", "maxWords"])),
  time: z
    .strictObject({ minTime: time, maxTime: time })
    .superRefine(ordered(["minTime", "maxTime", timeOfDay])),
  url: z.strictObject({ allowProtocols: texts, denyProtocols: texts }),
  yesNo: z.strictObject({ yesLabel: text, noLabel: text }),
} as const;
